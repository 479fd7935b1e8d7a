"""What each reason, refusal and event means, and what to do; the tests see that none is missing."""

from __future__ import annotations

ANSWERS = {
    "Placed": (
        "admitted",
        "The gang has a place.",
        "Nothing.",
    ),
    "AlreadyReserved": (
        "admitted",
        "The gang was planned before, and keeps its reservation.",
        "Nothing.",
    ),
    "Reserved": (
        "admitted",
        "The gang has this reservation; it was not planned again.",
        "Nothing.",
    ),
    "NoRoomNow": (
        "queued",
        "The gang fits the empty cluster, but not the capacity that is free now.",
        (
            "Wait, or choose what the message lists as working now. `bayplan why` shows which gangs "
            "use the capacity."
        ),
    ),
    "BehindOthers": (
        "queued",
        "There is a place, but it is kept for gangs that are ahead in the queue.",
        "Wait; `bayplan queue` shows the order. A higher PriorityClass goes first.",
    ),
    "HoldLimit": (
        "queued",
        "Its namespace would reserve more than its ResourceQuotas or the parameters `holds.*` allow.",
        "Wait for other gangs of the namespace to end, use `bayplan.dev/reserve: nodes`, or raise the limit.",
    ),
    "WaitsForNodes": (
        "queued",
        "The gang fits nodes that an autoscaler can add.",
        "Wait. Its pods have no gate, so that the autoscaler sees them.",
    ),
    "WaitsForAll": (
        "queued",
        "The gang starts together with other gangs, and one of them has no place.",
        "See the answer of that gang.",
    ),
    "ReplicaWaits": (
        "queued",
        "The replica that the pod belongs to has no place yet.",
        "See the answer of the workload.",
    ),
    "OthersStart": (
        "queued",
        "KAI may evict others for it, but without the nodes of gangs that are about to start it has too few.",
        "Wait. Its pods are let in when enough of these gangs have started.",
    ),
    "NoRoomBeside": (
        "queued",
        "The gang has a reservation, and there is no room next to it for these additional pods.",
        "Wait, or request all pods of the gang at once.",
    ),
    "GatedByOthers": (
        "queued",
        "Its pods have a scheduling gate of another controller.",
        "Find out who removes that gate. The gang is planned when it is removed.",
    ),
    "WaitsForKueue": (
        "queued",
        "Kueue has not admitted the workload.",
        "`kubectl describe workload` shows Kueue's reason.",
    ),
    "SearchBudgetExhausted": (
        "queued",
        "The search reached its limit before all packings were tried.",
        "Use fewer different kinds of pods in one gang.",
    ),
    "LimitPerLeaf": (
        "queued or rejected",
        "`topologyConstraints` limit the nodes or GPUs per leaf too strictly for the gang.",
        "Use fewer pods, or raise the limits in `topology-scheduler-config`.",
    ),
    "TooLargeForLevel": (
        "rejected",
        "No domain of the required level is large enough, even when empty.",
        "Use fewer pods, or the coarser level that the message names.",
    ),
    "TooLargeForCluster": (
        "rejected",
        "The cluster is too small, even when empty.",
        "Use fewer or smaller pods, or add nodes.",
    ),
    "PodFitsNoNode": (
        "rejected",
        "A single pod requests more than any node has.",
        "Request less; the message names the resource and the largest amount on a node.",
    ),
    "NoNodeMatches": (
        "rejected",
        "No node matches the node selectors, affinity and taints.",
        "Use the label value or the toleration that the message names.",
    ),
    "NoNUMAFit": (
        "rejected",
        "No kubelet could align the pod (`TopologyAffinityError`).",
        "Request amounts that fit one NUMA node, or use nodes with another Topology Manager policy.",
    ),
    "NoLinkFastEnough": (
        "rejected",
        "No leaf has links of the requested speed.",
        "Use the speed that the message names.",
    ),
    "UnknownTopology": (
        "rejected",
        "The cluster has no Topology of this name.",
        "Use one of the Topologies that the message names.",
    ),
    "UnknownLevel": (
        "rejected",
        "No topology has this level.",
        "Use one of the levels that the message names.",
    ),
    "MultipleTopologies": (
        "rejected",
        "Parts of one gang refer to two topologies.",
        "Use one topology for all parts.",
    ),
    "PodSetLevelTooCoarse": (
        "rejected",
        "The required level of a part is coarser than that of the whole gang.",
        "Use the level of the gang or a finer one.",
    ),
    "SliceLevelTooCoarse": (
        "rejected",
        "The level of the slices is coarser than the required level.",
        "Use the required level or a finer one.",
    ),
    "SliceLevelMissing": (
        "rejected",
        "A slice size is set, but no slice level.",
        "Set the slice level.",
    ),
    "SlicesDoNotDivide": (
        "rejected",
        "The number of pods is not a multiple of the slice size.",
        "Use one of the numbers that the message names.",
    ),
    "NoSuchDevice": (
        "rejected",
        "No node offers what a ResourceClaim requests.",
        "Request fewer devices, or a device class that nodes offer.",
    ),
    "ClaimTakesOnePod": (
        "rejected",
        "Several pods mount a volume claim that allows one pod (`ReadWriteOncePod`).",
        "Use a claim for each pod, or ReadWriteMany.",
    ),
    "PartAndWholeGpu": (
        "rejected",
        "A pod requests a fraction of a GPU and whole GPUs.",
        "Request only one of the two.",
    ),
    "NoPods": (
        "rejected",
        "The gang has no pods.",
        "Request at least one.",
    ),
    "DuplicatePodSet": (
        "rejected",
        "Two parts of a gang have the same name.",
        "Give each part its own name.",
    ),
    "TooManyPods": (
        "rejected",
        "The gang has more pods than any cluster can run.",
        "Check the number for a typing error.",
    ),
    "NegativeCount": (
        "rejected",
        "A part has a negative number of pods.",
        "Use 0 or more.",
    ),
    "MinimumAboveMaximum": (
        "rejected",
        "The minimum of an elastic gang is above its maximum.",
        "Lower the minimum.",
    ),
    "AbsurdQuantity": (
        "rejected",
        "A quantity is negative, or too large to count.",
        "Use 0 or more.",
    ),
}
"""Of a gang: the decision, what it means, what to do."""

REFUSALS = {
    ("Invalid", 422): (
        "A policy or the planner refuses the object, an expression fails, or the object cannot be read.",
        "The message says what would work. Applying the same object again gives the same result.",
    ),
    ("Forbidden", 403): (
        "The gang has no place now and has `bayplan.dev/on-unavailable: reject`, or a policy forbids it.",
        "Apply again later, or let it queue.",
    ),
    ("Conflict", 409): (
        "Another gang took the place while this one was being stored.",
        "Apply again. Controllers do this automatically.",
    ),
    ("AlreadyExists", 409): (
        "A gang of this name already has a reservation, most likely of an object that is being deleted.",
        "Delete that object, or wait until it is gone.",
    ),
    ("RequestEntityTooLarge", 413): (
        "The decision takes longer than a single call may take.",
        "Use fewer kinds of pods, containers or affinity terms; the message says which.",
    ),
    ("TooManyRequests", 429): (
        "Too many calls are waiting for a decision.",
        "Apply again in a moment. Controllers do this automatically.",
    ),
    ("ServiceUnavailable", 503): (
        "The replica cannot write reservations now.",
        (
            "Check its log and `/readyz`. In namespaces that are not enforced, nothing is refused for"
            " this reason."
        ),
    ),
    ("InternalError", 500): (
        "Two processes ended one after the other while they decided on the object (`serve --workers`).",
        "Apply again. If it happens again, check the kernel log for processes that ran out of memory.",
    ),
}
"""Of a call: what it means, what to do."""

EVENTS = {
    "Reserved": (
        "The gang has a reservation. The message says which kind (domain, nodes).",
        "Nothing.",
    ),
    "Queued": (
        "The gang's position in the queue, and what it waits for. The event is repeated when these change.",
        "See the reason above; `bayplan why` shows details.",
    ),
    "Admitted": (
        (
            "The gates of waiting pods were removed, because they have a place or because their "
            "namespace is no longer enforced."
        ),
        "Nothing.",
    ),
    "Replanned": (
        (
            "Nodes or the reservation were lost, and the gang gets another place. As a warning: there"
            " is no other place now."
        ),
        "After a warning: the gang gets a place when one is free; see `bayplan why`.",
    ),
    "Followed": (
        "Pods were bound to other nodes than planned, and the reservation was changed to these nodes.",
        "Nothing.",
    ),
    "Adopted": (
        "Kueue assigned these nodes to the pods, and they are now reserved for the gang.",
        "Nothing.",
    ),
    "NotAdopted": (
        (
            "Kueue assigned nodes that another gang reserves or fills. Only the other assigned nodes "
            "are reserved."
        ),
        "Keep Kueue out of reserved racks with `--fence taint`, or give its flavors separate nodes.",
    ),
    "Released": (
        "The reservation was released. The message says why.",
        "Nothing, if this was intended.",
    ),
    "Defragmenting": (
        (
            "The gang has waited for `defrag.after-seconds`, and other workloads are moved for it. "
            "The message names them and the work that is lost."
        ),
        "Nothing.",
    ),
    "Defragmented": (
        (
            "On a moved workload: its pods are evicted for a waiting gang, and where they go. On the "
            "waiting gang: it has a place."
        ),
        "Nothing. To keep a workload from being moved, remove its label `bayplan.dev/restartable`.",
    ),
    "DefragmentationStopped": (
        (
            "The moves for the gang were stopped because something unexpected happened. The nodes are"
            " uncordoned, and evicted workloads have their new place."
        ),
        "Check what the message names. The next attempt follows after `defrag.every-seconds`.",
    ),
    "NotDefragmented": (
        (
            "The gang has waited for `defrag.after-seconds`, but no workload is moved for it. The "
            "message says why."
        ),
        "Wait, or allow what the message names: a PodDisruptionBudget, the label, `defrag.gpu-hours`.",
    ),
    "Unbound": (
        (
            "No scheduler has bound the gang's pods for a minute. The message includes what the "
            "scheduler or Kueue reports."
        ),
        "Check what it reports: a quota, a queue, a scheduler that does not run, another admission policy.",
    ),
}
"""Of an event: what it means, what to do."""

NOTES = {
    "Replaced": (
        (
            "An update contains a new pod template, which policies changed. The workload's controller"
            " will replace the pods."
        ),
        "Nothing, if this was intended.",
    ),
    "FewerReplicas": (
        "With lower limits, more pods of this kind would fit than with the amounts that were written.",
        "Set the limits that the warning names.",
    ),
}
"""Of a warning in reports."""

MOVES = {
    "TooFewDomains": (
        "The cluster has fewer domains than `--free` requests.",
        "Use a smaller `--free`.",
    ),
    "DomainsKept": (
        "Too few domains can be freed, because pods that cannot be moved occupy the others.",
        'The list names these pods; `bayplan.dev/restartable: "true"` allows a gang to be moved.',
    ),
    "NoOtherPlace": (
        "Workloads that would have to move have no other place.",
        "Use a smaller `--free`, or wait.",
    ),
    "NoRoom": (
        "Moving the workloads that can be moved does not make enough room.",
        "Mark more gangs as restartable, or wait.",
    ),
    "TooFewGpus": (
        "The cluster has fewer free GPUs than the gang requests, so moves cannot help.",
        "Wait.",
    ),
    "TooMuchWork": (
        "The moves would lose more work than `defrag.gpu-hours` allows.",
        "Raise the limit, or use `bayplan defrag --for`, which has no such limit.",
    ),
}
"""Of `bayplan defrag`."""
