"""Builds a job that runs nccl-tests' `all_reduce_perf` on given nodes: an MPIJob, or a Job for a
single node.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.model.resources import GPU
from planner.model.topology import HOSTNAME

IMAGE = "nvcr.io/nvidia/pytorch:25.06-py3"
"""An image with `all_reduce_perf`, `mpirun` and sshd."""

LABEL = "bayplan.dev/nccl-test"
"""The label for the anti-affinity between the job's workers, which puts each on a different node."""

SKIP_KEY = "bayplan.dev/skip"
"""The annotation of a workload that Bayplan does not plan; it is read in `webhook.workloads.options`."""

_TEST = ["all_reduce_perf", "-b", "8M", "-e", "8G", "-f", "2"]
"""8 MiB to 8 GiB, each size twice the one before."""


def nccl_job(
    name: str,
    namespace: str,
    gpus_by_host: Mapping[str, int],
    devices_per_gpu: Mapping[str, float],
    image: str = IMAGE,
) -> dict[str, object]:
    """Returns the job as a manifest. `gpus_by_host`: the number of GPUs of the gang under test by hostname
    label.

    The job uses the same number of GPUs on each host: the smallest of these numbers. It runs only on these
    hosts and tolerates all their taints. Bayplan does not plan it (`SKIP_KEY`), because the reservation of
    the place belongs to the gang under test. For each GPU the job also requests `devices_per_gpu`, as the
    gang does. The job starts when the GPUs are free. Raises `ValueError` without hosts.
    """
    per_host = min(gpus_by_host.values())
    hosts = sorted(gpus_by_host)
    devices = {resource: str(int(per_gpu * per_host)) for resource, per_gpu in devices_per_gpu.items()}
    limits = {"resources": {"limits": {GPU: str(per_host), **devices}}}
    if len(hosts) == 1:
        run = {"name": "test", "image": image, "command": [*_TEST, "-g", str(per_host)]}
        pod = _pod(name, {**run, **limits}, hosts) | {"restartPolicy": "Never"}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": _metadata(name, namespace),
            "spec": {"backoffLimit": 0, "template": _template(name, pod)},
        }
    total = per_host * len(hosts)
    command = ["mpirun", "-np", str(total), "--bind-to", "none", *_TEST, "-g", "1"]
    launcher = {"containers": [{"name": "launcher", "image": image, "command": command}]}
    worker = {"name": "worker", "image": image, "command": ["/usr/sbin/sshd", "-De"], **limits}
    replicas = {
        "Launcher": {"replicas": 1, "template": _template("", launcher)},
        "Worker": {"replicas": len(hosts), "template": _template(name, _pod(name, worker, hosts))},
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": _metadata(name, namespace),
        "spec": {
            "slotsPerWorker": per_host,
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": replicas,
        },
    }


def _metadata(name: str, namespace: str) -> dict[str, object]:
    return {"name": name, "namespace": namespace, "annotations": {SKIP_KEY: "true"}}


def _template(name: str, spec: Mapping[str, object]) -> dict[str, object]:
    labels = {"labels": {LABEL: name}} if name else {}
    return {"metadata": {"annotations": {SKIP_KEY: "true"}, **labels}, "spec": spec}


def _pod(name: str, container: Mapping[str, object], hosts: list[str]) -> dict[str, object]:
    place = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": hosts}]}
    apart = {"labelSelector": {"matchLabels": {LABEL: name}}, "topologyKey": HOSTNAME}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "tolerations": [{"operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {required: {"nodeSelectorTerms": [place]}},
            "podAntiAffinity": {required: [apart]},
        },
        "containers": [container],
    }
