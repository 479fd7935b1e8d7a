"""What a cluster shows of scheduling systems: which there are, and the objects that pods name to them.

A system is called as pods name its scheduler (`kai-scheduler`); Kueue, which has none, is called `kueue`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KAI = "kai-scheduler"


KUEUE = "kueue"


RUNAI = "runai-scheduler"
"""Run:ai's, installed on top of KAI, whose kinds and Topologies it reads."""


BAYPLAN = "bayplan"


GPU = "gpu"
"""What queues of KAI's call GPUs of any kind."""


QueueBound = tuple[float, str]
"""An amount, and the queue whose bound it is."""


@dataclass(frozen=True, slots=True)
class SchedulersSeen:
    """The scheduling systems of one cluster.

    `shown`: by system or schedulerName, what shows that it is there, in words. `queues`: by system the names
    of its queues, of Kueue's LocalQueues as NAMESPACE/NAME; a system that is missing there has queues of
    which nothing is known, because cluster files hold none. `topologies`: by system the Topology objects that
    it follows, each with its levels, the hostname the last of them. `queue_topologies`: by LocalQueue of
    Kueue's, NAMESPACE/NAME, the Topologies of the flavors that it gives, where that is known. `watched`: what
    was not seen is not there, while cluster files hold only what somebody asked for.
    """

    shown: Mapping[str, str] = field(default_factory=dict)
    queues: Mapping[str, frozenset[str]] = field(default_factory=dict)
    topologies: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    queue_topologies: Mapping[str, frozenset[str]] = field(default_factory=dict)
    watched: bool = False
    gpu_limits: Mapping[str, QueueBound] = field(default_factory=dict)
    """By queue of KAI's how many GPUs it may use at most, and whose limit that is: its own, or one's above
    it; queues without any limit are left out."""
    quotas: Mapping[str, Mapping[str, QueueBound]] = field(default_factory=dict)
    """By queue of KAI's, and by resource (`gpu`, `cpu`, `memory`; base units), how much pods of it may use
    that KAI evicts for nobody."""


NOTHING_SEEN = SchedulersSeen()
