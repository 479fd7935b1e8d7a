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

Topic = Literal["settings", "waiting", "params", "skips", "access", "pod group", "pod groups"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The part of the environment of one decision that is sent with it; the worker asks for the rest.

    `settings`: by namespace, those that nearly every decision needs. `parameters`: None if they are those of
    the last job. `pod_groups`: their number.
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
    """One decision. `difference`: what has changed in the cluster since the last job, None without a
    cluster.
    """

    request: AdmissionRequest
    phase: Phase
    difference: SnapshotDelta | None
    surroundings: Surroundings


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a decision to its environment."""

    topic: Topic
    words: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class EnvironmentReply:
    """The answer; `error` is raised in the decision."""

    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The decision without its plan's snapshot, and the core seconds that it took."""

    decision: Decision
    worked: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The decision raised an unexpected error, or cannot be sent; contains a traceback."""

    traceback: str
