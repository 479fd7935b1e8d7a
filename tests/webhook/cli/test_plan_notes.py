"""`bayplan plan`, `report` and `mutate` decide alike, or `plan` says where the webhook would not plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.calls import EXAMPLES
from tests.webhook.workloads import objects as o

Json = dict[str, Any]
SUPERPOD = str(EXAMPLES / "clusters" / "superpod-32.yaml")
LIMITS = ("spec", "template", "spec", "containers", 0, "resources", "limits")


def asking(**limits: int) -> Json:
    """A Job of one pod that asks for this."""
    job = o.changed(o.changed(o.JOB, ("spec", "parallelism"), 1), ("spec", "completions"), 1)
    return o.changed(job, LIMITS, limits)


def written(folder: Path, *objects: Json) -> str:
    """A file with these objects."""
    file = folder / "jobs.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


@pytest.mark.parametrize("command", ["plan", "report", "mutate"])
def test_a_misspelt_gpu_is_refused_by_each_command(run: Any, tmp_path: Path, command: str) -> None:
    """No node will ever have such a device, so the pod would wait for ever."""
    file = written(tmp_path, asking(**{"nvidia.com/gpus": 8}))
    code, out, err = run(command, "-c", SUPERPOD, "-f", file)
    assert code == 1
    assert "nvidia.com/gpu in place of nvidia.com/gpus" in " ".join((out + err).split())


def test_what_the_webhook_does_not_plan_is_told_in_one_line(run: Any, tmp_path: Path) -> None:
    """`plan` plans every Job, the webhook only those with GPUs or keys."""
    names = [f"cpu-{number}" for number in range(3)]
    jobs = [o.changed(asking(cpu=1), ("metadata", "name"), name) for name in names]
    _, _, err = run("plan", "-c", SUPERPOD, "-f", written(tmp_path, *jobs))
    assert err == (
        "Note: the webhook does not plan team/Job/cpu-0, team/Job/cpu-1, team/Job/cpu-2: no GPU is "
        "requested, and no topology key and no key of Bayplan is set\n"
    )


def test_a_job_that_opts_out_is_planned_with_a_note(run: Any, tmp_path: Path) -> None:
    """The plan shows what the annotation gives up."""
    job = o.annotated(asking(**{"nvidia.com/gpu": 8}), {"bayplan.dev/skip": "true"})
    code, out, err = run("plan", "-c", SUPERPOD, "-f", written(tmp_path, job))
    assert (code, "admitted" in out) == (0, True)
    assert err.startswith("Note: the webhook does not plan team/Job/demo: bayplan.dev/skip is set")
