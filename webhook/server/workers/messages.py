"""The messages between the serving process and a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from planner.cluster.delta import SnapshotDelta
from webhook.admission.configuration.parameters import Parameters
from webhook.admission.configuration.settings import Settings
from webhook.admission.decision_record import Decision, Phase
from webhook.admission.environment import GroupMember, Workload
from webhook.wire.request import AdmissionRequest

Topic = Literal["settings", "waiting", "params", "skips", "members", "access", "pod group", "pod groups"]
"""What a question asks for; `_ANSWERS` in `conversation` has the answer to each."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The part of a decision's environment that is sent with its job; the worker asks for the rest.

    `settings`: by namespace, only those that nearly every decision needs. `parameters`: None if they are the
    same as in the last job. `pod_groups`: the number of PodGroups. The other fields: see `Environment`.
    """

    namespaces: Mapping[str, Any]
    settings: Mapping[str, Settings]
    parameters: Parameters | None
    pod_groups: int
    members: Sequence[GroupMember]
    sharing: Mapping[str, Sequence[Workload]]
    fenced: bool
    rivals: int
    now: float


@dataclass(frozen=True, slots=True)
class DecisionJob:
    """The order to make one decision.

    `difference`: the change of the cluster since the last job; None if there is no cluster.
    """

    request: AdmissionRequest
    phase: Phase
    difference: SnapshotDelta | None
    surroundings: Surroundings


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a decision to its environment; `words` are its arguments."""

    topic: Topic
    words: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class EnvironmentReply:
    """The answer to a question; if `error` is not None, the worker raises it."""

    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """A decision without its plan's snapshot; `worked`: the core seconds that it took."""

    decision: Decision
    worked: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The report that a decision raised an unexpected error, or could not be sent; contains the traceback."""

    traceback: str
