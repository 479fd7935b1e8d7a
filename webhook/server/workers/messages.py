"""What travels between the serving process and a worker."""

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
    """The environment of one decision, as far as it is sent beforehand; the rest is asked for.

    `settings`: by namespace, those that nearly every decision asks for. `parameters`: None where they are
    those of the last job. `pod_groups`: how many there are.
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
    """One decision. `difference`: what has changed in the cluster since the last job, None without one."""

    request: AdmissionRequest
    phase: Phase
    difference: SnapshotDelta | None
    surroundings: Surroundings


@dataclass(frozen=True, slots=True)
class Question:
    """What a decision asks its environment for."""

    topic: Topic
    words: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class EnvironmentReply:
    """The answer; `error` is raised where the decision asked."""

    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The decision, without its plan's snapshot, and the seconds of a core that it took."""

    decision: Decision
    worked: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The decision raised what nobody expects of it, or has no form that can be sent; a traceback."""

    traceback: str
