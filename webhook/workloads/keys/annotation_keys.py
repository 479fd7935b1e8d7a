"""The keys that Bayplan itself writes onto objects, and the two of a user that its other parts read too.

Policies define the keys that they write; what a user chooses besides is in `options`.
"""

from __future__ import annotations

from planner.manifests.nccl_job import SKIP_KEY
from planner.manifests.pods.bound_pod import RESERVATION_KEY

RESERVATION = RESERVATION_KEY
"""Annotation: the gang's reservation id (comma-separated, in replica order, if there are several)."""


PLACEMENT = "bayplan.dev/placement"
"""Annotation: a summary of the plan as JSON: decision, topology, level, domain, reserves, nodes."""


POLICIES = "bayplan.dev/policies"
"""Annotation: the policies that ran, `name,name@revision`."""


APPLIED = "bayplan.dev/applied"
"""Annotation of an object whose templates were changed: digests of them as received and as changed."""


POD_SET = "bayplan.dev/pod-set"
"""Annotation on a pod template: the PodSet of the plan to which its pods belong."""


GANG_OF = "bayplan.dev/gang-of"
"""Annotation on the template of a Deployment or StatefulSet that is one gang: the gang's name. On a
LeaderWorkerSet's template: it had no replica at creation, and those that come are gangs.
"""


QUEUED_GATE = "bayplan.dev/queued"
"""Scheduling gate: the gang waits for a place, and its pods are not scheduled one by one meanwhile."""


SKIP = SKIP_KEY
"""Annotation, "true": no plan and no mutation; validating policies still apply."""


RESTARTABLE = "bayplan.dev/restartable"
"""Label, "true" or "false": whether `bayplan defrag` may move the pods, which restarts them."""


DEFRAGMENTATION = "bayplan.dev/defragmentation"
"""Annotation of a node that `bayplan defrag --apply` has cordoned, as JSON: the goal, and the time."""


POD_GANGS = ("Pod", "Gang", "PodGroup", "Workload")
"""Kinds in gang names whose gangs live as long as their pods."""
