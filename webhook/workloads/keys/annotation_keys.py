"""The keys that Bayplan itself writes onto objects, and three keys of users that several packages read.

The keys that policies write are defined in the policies. The other annotations of users are in `options`.
"""

from __future__ import annotations

from planner.manifests.nccl_job import SKIP_KEY
from planner.manifests.pods.bound_pod import RESERVATION_KEY

RESERVATION = RESERVATION_KEY
"""Annotation: the gang's reservation id (comma-separated, in replica order, if there are several)."""


PLACEMENT = "bayplan.dev/placement"
"""Annotation: a summary of the plan as JSON: decision, topology, level, domain, reserves, nodes; of a gang
that is admitted without a place, what it waits for; of a queued gang, amounts that its author stated and
policies raised (`stamp.py`)."""


POLICIES = "bayplan.dev/policies"
"""Annotation: the policies that changed the object, and their revision: `name,name@revision`."""


APPLIED = "bayplan.dev/applied"
"""Annotation of an object whose templates were changed: digests of them as received and as changed."""


POD_SET = "bayplan.dev/pod-set"
"""Annotation on a pod template: the PodSet of the plan to which its pods belong."""


GANG_OF = "bayplan.dev/gang-of"
"""Annotation on the pod template of a workload that may be scaled: its pods start together.

The value is the workload's name. Written for a Deployment, ReplicaSet or StatefulSet that is one gang, with
or without pods, and for a LeaderWorkerSet without pods: when it is scaled, admission sees only the pods.
"""


QUEUED_GATE = "bayplan.dev/queued"
"""Scheduling gate: the gang waits for a place, and its pods are not scheduled one by one meanwhile."""


SKIP = SKIP_KEY
"""Annotation, "true": no plan and no mutation; validating policies still apply."""


RESTARTABLE = "bayplan.dev/restartable"
"""Label, "true" or "false": whether defragmentation may move the pods, which restarts them."""


DEFRAGMENTATION = "bayplan.dev/defragmentation"
"""Annotation of a node that `bayplan defrag --apply` or the leader has cordoned, as JSON: the goal, the gang
to be placed, the time, and whether the leader did it."""


EXCLUSIVE_JOBSET = "alpha.jobset.sigs.k8s.io/exclusive-topology"
"""JobSet's annotation of a JobSet or of the template of a replicated job: the level of which each child Job
gets a domain of its own."""


EXCLUSIVE_LWS = "leaderworkerset.sigs.k8s.io/exclusive-topology"
"""LeaderWorkerSet's annotation: the level of which each replica gets a domain of its own."""


SUBGROUP_SIZE = "leaderworkerset.sigs.k8s.io/subgroup-size"
"""LeaderWorkerSet's annotation of its pods: `subGroupSize` of its policy, which KAI takes as segment size."""
