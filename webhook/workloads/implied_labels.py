"""Labels that a workload's controller will add to its pods, and that templates do not have yet.

Pod affinity and anti-affinity often select by them. Sources: the Job controller of Kubernetes, JobSet,
LeaderWorkerSet, Kubeflow's training operator and MPI operator, KubeRay.
"""

from __future__ import annotations

_JOB = ("job-name", "batch.kubernetes.io/job-name")


_TRAINING = "training.kubeflow.org/job-name"


_BY_KIND: dict[str, tuple[str, ...]] = {
    "Job": _JOB,
    "JobSet": ("jobset.sigs.k8s.io/jobset-name",),
    "LeaderWorkerSet": ("leaderworkerset.sigs.k8s.io/name",),
    "RayCluster": ("ray.io/cluster",),
    **dict.fromkeys(("PyTorchJob", "TFJob", "XGBoostJob", "JAXJob", "PaddleJob", "MPIJob"), (_TRAINING,)),
}
"""Labels whose value is the workload's name, by its kind."""


LABELS_WITH_NAME = frozenset(label for labels in _BY_KIND.values() for label in labels)
"""All labels of pods whose value is the name of their workload."""


_BY_SET = {"JobSet": "jobset.sigs.k8s.io/replicatedjob-name"}
"""Labels whose value is the PodSet's name."""


def implied_labels(kind: str, name: str, pod_set: str) -> dict[str, str]:
    """Returns the labels that the pods of a workload's PodSet have in addition to those of its template."""
    labels = dict.fromkeys(_BY_KIND.get(kind, ()), name)
    if kind in _BY_SET:
        labels[_BY_SET[kind]] = pod_set
    return labels
