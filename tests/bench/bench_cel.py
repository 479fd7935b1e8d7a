"""Twenty expressions through three engines, on pods that grow: `python tests/bench/bench_cel.py`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from webhook.cel import CostBudget, Declarations, compile

EXPRESSIONS = (
    "object.metadata.name.startsWith('train')",
    "object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
    "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits))",
    "object.spec.containers.exists(c, 'nvidia.com/gpu' in c.resources.limits)",
    "!has(object.spec.hostNetwork) || object.spec.hostNetwork == false",
    "has(object.metadata.labels) && 'app' in object.metadata.labels",
    "object.metadata.labels['app'] == 'trainer'",
    "object.spec.containers.filter(c, 'nvidia.com/gpu' in c.resources.limits).size() == 1",
    "object.spec.containers.map(c, c.name).size() == size(object.spec.containers)",
    "object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged))",
    "object.spec.tolerations.exists(t, t.key == 'nvidia.com/gpu' && t.operator == 'Exists')",
    "object.spec.schedulerName in ['kai-scheduler', 'default-scheduler']",
    "object.spec.volumes.all(v, !has(v.hostPath))",
    "object.metadata.annotations['kai.scheduler/topology'].matches('^[a-z-]+$')",
    "has(object.spec.securityContext) ? object.spec.securityContext.runAsNonRoot : false",
    "object.spec.containers.all(c, c.env.all(e, e.name.size() < 64))",
    "object.spec.restartPolicy == 'Never' && object.metadata.namespace != 'kube-system'",
    "object.spec.terminationGracePeriodSeconds >= 30 && object.spec.terminationGracePeriodSeconds <= 600",
    "object.spec.containers.exists_one(c, c.name == 'main')",
    "'gang-' + object.metadata.labels['app'] == 'gang-trainer'",
)


def container(index: int) -> dict[str, Any]:
    """One container of about 1.5 KB, as `kubectl get -o json` prints it."""
    gpu = {"nvidia.com/gpu": "8", "rdma/hca": "8"} if index == 0 else {}
    return {
        "name": "main" if index == 0 else f"sidecar-{index}",
        "image": f"registry.example.com/ml/trainer-{index}:2026.11.3",
        "imagePullPolicy": "IfNotPresent",
        "command": ["torchrun", "--nnodes=4", "--nproc-per-node=8", "train.py"],
        "args": ["--config", "/etc/train/config.yaml", "--checkpoint-dir", "/checkpoints"],
        "env": [{"name": f"NCCL_SETTING_{i}", "value": f"value-{i}"} for i in range(16)],
        "ports": [{"containerPort": 29500, "name": "rendezvous", "protocol": "TCP"}],
        "resources": {
            "limits": {"cpu": "96", "memory": "1Ti", **gpu},
            "requests": {"cpu": "96", "memory": "1Ti", **gpu},
        },
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["IPC_LOCK"]}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"mountPath": "/checkpoints", "name": "checkpoints"},
            {"mountPath": "/dev/shm", "name": "shm"},
            {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token", "readOnly": True},
        ],
    }


def pod(containers: int) -> dict[str, Any]:
    """A pod with so many containers."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-worker-0",
            "namespace": "research",
            "uid": "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
            "labels": {"app": "trainer", "team": "vision", "batch.kubernetes.io/job-name": "train"},
            "annotations": {
                "kai.scheduler/topology": "fabric",
                "example.com/contact": "vision@example.com",
            },
        },
        "spec": {
            "containers": [container(i) for i in range(containers)],
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "priorityClassName": "training",
            "restartPolicy": "Never",
            "schedulerName": "kai-scheduler",
            "securityContext": {"runAsNonRoot": True, "fsGroup": 1000},
            "serviceAccountName": "trainer",
            "terminationGracePeriodSeconds": 120,
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
            ],
            "volumes": [
                {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
                {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            ],
        },
    }


Engine = Callable[[dict[str, Any]], list[Any]]


def ours() -> Engine:
    """This engine."""
    programs = [compile(text, Declarations(variables={"object": None})) for text in EXPRESSIONS]

    def run(obj: dict[str, Any]) -> list[Any]:
        budget = CostBudget()
        bindings = {"object": obj}
        return [program.evaluate(bindings, budget) for program in programs]

    return run


def cel_expr_python() -> Engine:
    """Google's C++ engine; the activation is shared by the twenty, which is its best case."""
    from cel_expr_python import cel

    env = cel.NewEnv(variables={"object": cel.Type.DYN})
    programs = [env.compile(text) for text in EXPRESSIONS]

    def run(obj: dict[str, Any]) -> list[Any]:
        activation = env.Activation({"object": obj})
        return [program.eval(activation).value() for program in programs]

    return run


def interpreted_runner() -> Engine:
    """cel-python's InterpretedRunner."""
    import celpy

    env = celpy.Environment(runner_class=celpy.InterpretedRunner)
    programs = [env.program(env.compile(text)) for text in EXPRESSIONS]

    def run(obj: dict[str, Any]) -> list[Any]:
        activation = {"object": celpy.json_to_cel(obj)}
        return [bool(program.evaluate(activation)) for program in programs]

    return run


def milliseconds(engine: Engine, obj: dict[str, Any], seconds: float = 1.0) -> float:
    """The median time of one run, over runs for about so many seconds."""
    engine(obj)
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        engine(obj)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1000


def main() -> None:
    """Print the table."""
    small = pod(2)
    engines = {
        "webhook.cel": ours(),
        "cel-expr-python": cel_expr_python(),
        "cel-python InterpretedRunner": interpreted_runner(),
    }
    answers = {name: engine(small) for name, engine in engines.items()}
    if len({str(answer) for answer in answers.values()}) != 1:
        sys.exit(f"the engines disagree: {answers}")
    sizes = {count: pod(count) for count in (2, 5, 10, 20)}
    print(
        f"{'20 expressions, ms':30}"
        + "".join(f"{len(json.dumps(p)) / 1000:>9.1f} KB" for p in sizes.values())
    )
    for name, engine in engines.items():
        row = [milliseconds(engine, obj, 0.5 if "Interpreted" in name else 1.0) for obj in sizes.values()]
        print(f"{name:30}" + "".join(f"{ms:>12.3f}" for ms in row))


if __name__ == "__main__":
    main()
