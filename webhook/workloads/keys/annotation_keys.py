"""The names that Bayplan itself writes into objects; what policies write is theirs."""

from __future__ import annotations

from planner.manifests.nccl_job import SKIP_KEY
from planner.manifests.pods.bound_pod import RESERVATION_KEY

RESERVATION = RESERVATION_KEY
"""Annotation: the gang's reservation id (comma-separated, in replica order, where there are several)."""


PLACEMENT = "bayplan.dev/placement"
"""Annotation: the plan in short, as JSON: decision, topology, level, domain, reserves, nodes."""


POLICIES = "bayplan.dev/policies"
"""Annotation: the policies that ran, `name,name@revision`."""


APPLIED = "bayplan.dev/applied"
"""Annotation of an object whose templates were mended: digests of them as they came and as they are."""


POD_SET = "bayplan.dev/pod-set"
"""Annotation on a pod template: which PodSet of the plan its pods are."""


GANG_OF = "bayplan.dev/gang-of"
"""Annotation on the template of a Deployment or StatefulSet that is one gang: the gang's name. On that of a
LeaderWorkerSet it says that it had no replica when it was made, and that those that come are gangs."""


QUEUED_GATE = "bayplan.dev/queued"
"""Scheduling gate: the gang waits for a place; its pods are not scheduled one by one meanwhile."""


SKIP = SKIP_KEY
"""Annotation, "true": no plan and no mutation; validating policies still speak."""


RESTARTABLE = "bayplan.dev/restartable"
"""Label, "true" or "false": whether `bayplan defrag` may move the pods, which restarts them."""


DEFRAGMENTATION = "bayplan.dev/defragmentation"
"""Annotation of a node that `bayplan defrag --apply` has cordoned, as JSON: for which aim, and since when."""


POD_GANGS = ("Pod", "Gang", "PodGroup", "Workload")
"""Kinds in gangs' names whose gangs live as long as their pods."""
