"""The cost of `bayplan plan -o json` for an object with many replicas grows with their number, no faster."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from tests.effort import calls
from tests.webhook.workloads import objects as o
from webhook.cli.main import main

NODES = 160


def node(number: int) -> dict[str, Any]:
    """A host with one GPU."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}"}},
        "status": {"allocatable": {"cpu": "8", "pods": "10", "nvidia.com/gpu": "1"}},
    }


def test_the_numbers_behind_each_answer_cost_as_much_for_the_last_replica_as_for_the_first(
    tmp_path: Path,
) -> None:
    """Each replica takes a host. Were the cluster before each replica compared with that before the first,
    the hosts to compare would add up to the square of the replicas."""
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*map(node, range(NODES))]}))

    def effort(replicas: int) -> int:
        job = o.obj("apps/v1", "Deployment", {"replicas": replicas, "template": o.pod_template(1)})
        manifest = tmp_path / "many.json"
        manifest.write_text(json.dumps(job))

        def planned() -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                assert main(["plan", "-c", str(cluster), "-f", str(manifest), "-o", "json"]) == 0

        planned()  # imports and caches
        return calls(planned)

    none, few, many = effort(1), effort(40), effort(NODES)
    assert many - none < 5 * (few - none)
