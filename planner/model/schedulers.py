"""The scheduling systems of a cluster: which of them were detected, and their queues and Topologies.

The name of a system is the `schedulerName` of its pods (`kai-scheduler`); for Kueue, which has none, `kueue`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.labels import Toleration

KAI = "kai-scheduler"


KUEUE = "kueue"


RUNAI = "runai-scheduler"
"""Run:ai's scheduler. Run:ai is installed on top of KAI, and reads KAI's kinds and Topologies."""


BAYPLAN = "bayplan"


GPU = "gpu"
"""The name that KAI's Queues have for GPUs of any kind."""


QueueBound = tuple[float, str]
"""A maximum amount (base units), and the queue that states it."""


@dataclass(frozen=True, slots=True)
class SchedulersSeen:
    """The scheduling systems of one cluster.

    `shown`: by system or schedulerName, the object or pod that shows its presence, as text. `queues`: by
    system, the names of its queues (for Kueue its LocalQueues, as NAMESPACE/NAME); the queues of a system
    that is not a key are unknown, for example if the cluster files contain none. `topologies`: by system, the
    levels of each Topology that it reads, by name; the last level is the hostname. `queue_topologies`: by
    Kueue LocalQueue (NAMESPACE/NAME), the Topologies of its ResourceFlavors, if they are known. `watched`:
    whether the cluster was watched, so that an object that was not seen does not exist. Cluster files may
    lack objects that exist.
    """

    shown: Mapping[str, str] = field(default_factory=dict)
    queues: Mapping[str, frozenset[str]] = field(default_factory=dict)
    topologies: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    queue_topologies: Mapping[str, frozenset[str]] = field(default_factory=dict)
    watched: bool = False
    gpu_limits: Mapping[str, QueueBound] = field(default_factory=dict)
    """The maximum GPUs that each KAI Queue may use: the lowest limit of the Queue and its parents, with the
    Queue that states it. Queues without any limit are left out."""
    quotas: Mapping[str, Mapping[str, QueueBound]] = field(default_factory=dict)
    """The amounts that non-preemptible pods may use, by KAI Queue and resource (`gpu`, `cpu`, `memory`; base
    units): the lowest quota of the Queue and its parents."""
    queue_tolerations: Mapping[str, tuple[Toleration, ...]] = field(default_factory=dict)
    """By Kueue LocalQueue (NAMESPACE/NAME), the tolerations that its ResourceFlavors add to the pods."""


NOTHING_SEEN = SchedulersSeen()
