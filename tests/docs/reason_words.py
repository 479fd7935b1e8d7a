"""What each reason, refusal and event means, and what to do; the tests see that none is missing."""

from __future__ import annotations

ANSWERS = {
    "Placed": ("admitted", "The gang has a place.", "Nothing."),
    "AlreadyReserved": ("admitted", "It was planned before, and keeps the place that it holds.", "Nothing."),
    "Reserved": ("admitted", "It holds this place; nothing was planned again.", "Nothing."),
    "NoRoomNow": (
        "queued",
        "It fits the empty cluster, and not what is free now.",
        "Wait, or take what the message says would work now. `bayplan why` shows who is in the way.",
    ),
    "BehindOthers": (
        "queued",
        "There is a place, which is kept for gangs that wait already.",
        "Wait; `bayplan queue` shows the order. A higher PriorityClass goes first.",
    ),
    "HoldLimit": (
        "queued",
        "Its namespace would hold more than its ResourceQuotas or the parameters `holds.*` let it.",
        "Wait for gangs of the namespace, use `bayplan.dev/reserve: nodes`, or raise the limit.",
    ),
    "WaitsForNodes": (
        "queued",
        "It fits nodes that an autoscaler may add.",
        "Wait. Its pods have no gate, so that the autoscaler sees them.",
    ),
    "WaitsForAll": (
        "queued",
        "It starts together with others, of which one has no place.",
        "See the answer of that other gang.",
    ),
    "ReplicaWaits": ("queued", "The pod's replica has no place yet.", "See the workload's own answer."),
    "NoRoomBeside": (
        "queued",
        "Its gang holds a place, and beside that there is none for these pods.",
        "Wait, or ask for the whole gang at once.",
    ),
    "GatedByOthers": (
        "queued",
        "Its pods have a scheduling gate of somebody else's.",
        "See who opens that gate; it is planned then.",
    ),
    "WaitsForKueue": (
        "queued",
        "Kueue has not admitted it.",
        "`kubectl describe workload` tells Kueue's reason.",
    ),
    "SearchBudgetExhausted": (
        "queued",
        "The search ended before every packing was tried.",
        "Ask for fewer different kinds of pods in one gang.",
    ),
    "LimitPerLeaf": (
        "queued or rejected",
        "`topologyConstraints` allow so few nodes or GPUs of a gang in a leaf.",
        "Fewer pods, or higher limits in `topology-scheduler-config`.",
    ),
    "TooLargeForLevel": (
        "rejected",
        "No domain of the required level is large enough, even when empty.",
        "Fewer pods, or the coarser level that the message names.",
    ),
    "TooLargeForCluster": (
        "rejected",
        "The cluster is too small, even when empty.",
        "Fewer or smaller pods, or more nodes.",
    ),
    "PodFitsNoNode": (
        "rejected",
        "A single pod asks for more than any node has.",
        "Smaller requests; the message names the resource and the most that a node has.",
    ),
    "NoNodeMatches": (
        "rejected",
        "Selectors, affinity or taints leave no node.",
        "The label value or the toleration that the message names.",
    ),
    "NoNUMAFit": (
        "rejected",
        "No kubelet could align the pod: `TopologyAffinityError`.",
        "Amounts that fit one NUMA node, or nodes with another Topology Manager policy.",
    ),
    "NoLinkFastEnough": (
        "rejected",
        "No leaf has links as fast as asked for.",
        "The speed that the message names.",
    ),
    "UnknownTopology": ("rejected", "The cluster has no Topology of that name.", "One of those named."),
    "UnknownLevel": ("rejected", "No topology has that level.", "One of the levels named."),
    "MultipleTopologies": (
        "rejected",
        "The parts of one gang point into two topologies.",
        "Keep one of them.",
    ),
    "PodSetLevelTooCoarse": (
        "rejected",
        "A part's required level is coarser than the whole gang's.",
        "The gang's level or a finer one.",
    ),
    "SliceLevelTooCoarse": (
        "rejected",
        "The slices' level is coarser than the required one.",
        "The required level or a finer one.",
    ),
    "SliceLevelMissing": ("rejected", "A slice size without a slice level.", "Name the level."),
    "SlicesDoNotDivide": (
        "rejected",
        "The number of pods is no multiple of the slice size.",
        "One of the numbers that the message names.",
    ),
    "NoSuchDevice": (
        "rejected",
        "No node offers what a ResourceClaim asks for.",
        "Fewer devices, or a class that is offered.",
    ),
    "ClaimTakesOnePod": (
        "rejected",
        "Several pods mount a claim that takes one (`ReadWriteOncePod`).",
        "A claim for each pod, or ReadWriteMany.",
    ),
    "PartAndWholeGpu": (
        "rejected",
        "A pod asks for a part of a GPU and for whole ones.",
        "One of the two.",
    ),
    "NoPods": ("rejected", "The gang has no pods.", "Ask for one at least."),
    "DuplicatePodSet": ("rejected", "Two parts of a gang have one name.", "A name for each."),
    "TooManyPods": ("rejected", "More pods than any cluster runs.", "Most likely a slip in the number."),
    "NegativeCount": ("rejected", "A part has fewer than no pods.", "0 or more."),
    "MinimumAboveMaximum": ("rejected", "An elastic gang's least is above its most.", "A smaller least."),
    "AbsurdQuantity": ("rejected", "An amount below 0, or beyond counting.", "0 or more."),
}
"""Of a gang: the decision, what it means, what to do."""

REFUSALS = {
    ("Invalid", 422): (
        "A policy or the planner refuses it, an expression fails, or the object cannot be read.",
        "The message says what would work. It will be the same the next time.",
    ),
    ("Forbidden", 403): (
        "The gang has no place now and says `bayplan.dev/on-unavailable: reject`; or a policy forbids it.",
        "Apply again later, or let it queue.",
    ),
    ("Conflict", 409): (
        "Another gang took the place while this one was stored.",
        "Apply again. Controllers do so by themselves.",
    ),
    ("AlreadyExists", 409): (
        "A gang of this name is there and holds a place, most likely of an object that is being deleted.",
        "Delete that first, or wait until it is gone.",
    ),
    ("RequestEntityTooLarge", 413): (
        "One decision on it takes longer than a call may.",
        "Fewer kinds of pods, containers or affinity terms; the message says which.",
    ),
    ("TooManyRequests", 429): (
        "Too many calls wait for a decision.",
        "Apply again in a moment; controllers do so by themselves.",
    ),
    ("ServiceUnavailable", 503): (
        "The replica cannot write reservations now.",
        "See its log and `/readyz`; in namespaces that are not enforced nothing is refused for it.",
    ),
    ("InternalError", 500): (
        "Two processes in turn ended while they decided on it (`serve --workers`).",
        "Apply again; if it happens again, the kernel's log tells whether they ran out of memory.",
    ),
}
"""Of a call: what it means, what to do."""

EVENTS = {
    "Reserved": ("The gang holds a place, with how (domain, nodes).", "Nothing."),
    "Queued": (
        "Its position, and what it waits for; told again as that changes.",
        "See the reason above; `bayplan why` says more.",
    ),
    "Admitted": (
        "The pods of a gang that waited were let go, to their place or for want of enforcement.",
        "Nothing.",
    ),
    "Replanned": (
        "Nodes or the reservation were lost, and its pods go elsewhere; as a warning: there is no place now.",
        "For the warning: it gets a place as one is free; `bayplan why`.",
    ),
    "Followed": ("Pods are bound elsewhere than planned, and the reservation follows them.", "Nothing."),
    "Adopted": ("Kueue has assigned its pods these nodes, which are held for it now.", "Nothing."),
    "NotAdopted": (
        "Kueue has assigned nodes that another gang holds or fills: the rest is held, those are not.",
        "Keep Kueue out of held racks by `--fence taint`, or give its flavors nodes of their own.",
    ),
    "Released": ("Its place is free, and why.", "Nothing, if that was meant."),
    "Defragmenting": (
        "It has waited for `defrag.after-seconds`, and others move to make room: who, and what it loses.",
        "Nothing.",
    ),
    "Defragmented": (
        "On who moves: its pods are evicted for a gang that waits, to where. On that gang: it has its place.",
        "Nothing; take the label `bayplan.dev/restartable` from what shall not move.",
    ),
    "DefragmentationStopped": (
        "The moves for it met a surprise; the nodes are uncordoned, and what was evicted has its new place.",
        "Look at what the message names. The next try comes after `defrag.every-seconds`.",
    ),
    "NotDefragmented": (
        "It has waited for `defrag.after-seconds`, and nobody is moved for it, and why.",
        "Wait, or allow what the message names: a budget, the label, `defrag.gpu-hours`.",
    ),
    "Unbound": (
        "For a minute no scheduler has bound its pods; with what that scheduler, or Kueue, says.",
        "Look at what these say: quota, queue, a scheduler that does not run, another admission policy.",
    ),
}
"""Of an event: what it means, what to do."""

NOTES = {
    "Replaced": (
        "An update brings a new template, which policies mended: the controller replaces the pods by it.",
        "Nothing, if that was meant.",
    ),
    "FewerReplicas": (
        "More modest limits would let more pods of this kind fit than the amounts that were written do.",
        "State the limits that the warning names.",
    ),
}
"""Of a warning in reports."""

MOVES = {
    "TooFewDomains": ("The cluster has fewer domains than are to be freed.", "A smaller `--free`."),
    "DomainsKept": (
        "Too few domains can be freed: pods that may not be moved keep the others.",
        'The list says who keeps which; `bayplan.dev/restartable: "true"` lets a gang be moved.',
    ),
    "NoOtherPlace": ("Who would have to leave has no other place.", "A smaller `--free`, or wait."),
    "NoRoom": ("No moves of those who may be moved make room.", "Let more gangs be moved, or wait."),
    "TooFewGpus": ("Fewer GPUs are free in all than the gang asks for; moves free none.", "Wait."),
    "TooMuchWork": (
        "Moves would lose more work than `defrag.gpu-hours` lets them.",
        "Raise it, or move by `bayplan defrag --for`, which has no such limit.",
    ),
}
"""Of `bayplan defrag`."""
