"""The page of cluster files: the gangs in them, manifests applied beside, and files that change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from planner.model.errors import InputError
from tests.webhook.calls import EXAMPLES
from webhook.admission.configuration.settings import Settings
from webhook.cli.cluster_files.file_source import FileSource
from webhook.cli.clusters.ui import applying
from webhook.cli.main import main, parser
from webhook.ui.document import document
from webhook.ui.picture import Picture

SUPERPOD = str(EXAMPLES / "clusters" / "superpod-32.yaml")
JOBS = [
    str(EXAMPLES / f"{name}.yaml")
    for name in ("job-six-nodes-one-rack", "jobset-64-gpus", "job-nine-nodes-one-rack", "mpijob-32-gpus")
]


def source(clusters: list[str], *manifests: str) -> FileSource:
    """What `bayplan ui -c … -f …` reads."""
    words = ["ui", "-c", *clusters, *(["-f", *manifests] if manifests else [])]
    args = parser("ui").parse_args(words)
    return FileSource(args.cluster, args.filename, applying(args), Settings())


async def first(pictures: AsyncIterator[Picture]) -> Picture:
    """The next picture, within a minute."""
    async with asyncio.timeout(60):
        return await anext(pictures)


async def test_applied_manifests_get_the_places_that_plan_gives_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Who holds, who waits and for what, as `bayplan plan` with the same files; a refused one is told."""
    seen = await first(source([SUPERPOD], *JOBS).pictures())
    main(["plan", "-c", SUPERPOD, "-f", *JOBS, "-o", "json"])
    planned = {gang["name"]: gang for gang in orjson.loads(capsys.readouterr().out)["gangs"]}
    gangs: dict[str, Any] = dict(document(seen)["gangs"])
    decisions = {name: planned[name]["decision"] for name in planned}
    assert {name: ("queued" if gang["position"] else "admitted") for name, gang in gangs.items()} == {
        name: decision for name, decision in decisions.items() if decision != "rejected"
    }
    for name, gang in gangs.items():
        if gang["position"]:
            assert gang["message"] == planned[name]["message"]
        else:
            assert gang["holds"]["nodes"] == sorted({a["node"] for a in planned[name]["assignments"]})
    (refused,) = (name for name, decision in decisions.items() if decision == "rejected")
    refusals = [entry for entry in seen.decisions if entry.name == refused]
    assert any("rack" in entry.message for entry in refusals)


async def test_policies_are_told_with_their_revision_and_counts() -> None:
    """What each changed or refused, by namespace."""
    seen = await first(source([SUPERPOD], *JOBS).pictures())
    assert len(seen.revisions) == 1
    counts = {policy.name: policy.namespaces for policy in seen.policies}
    assert counts["kai-queue"]["research"]["changed"] >= 1


def dump(*objects: dict[str, Any]) -> str:
    """As `kubectl get -o json` prints it."""
    return orjson.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}).decode()


def queued_job(name: str, nodes: int) -> dict[str, Any]:
    """A Job of whole nodes in one rack, which the webhook has put into the queue."""
    requests = {"nvidia.com/gpu": "8"}
    annotations = {
        "bayplan.dev/placement": '{"decision":"queued"}',
        "kai.scheduler/topology": "superpod",
        "kai.scheduler/topology-required-placement": "cloud.provider.com/topology-rack",
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "research",
            "uid": name,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": annotations,
        },
        "spec": {
            "completionMode": "Indexed",
            "parallelism": nodes,
            "completions": nodes,
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {
                            "name": "main",
                            "image": "x",
                            "resources": {"limits": requests, "requests": requests},
                        }
                    ],
                },
            },
        },
    }


async def test_gangs_of_a_dump_wait_or_are_let_in_as_the_controller_decides(tmp_path: Path) -> None:
    """Nine nodes fit no rack; two fit now."""
    (tmp_path / "jobs.json").write_text(dump(queued_job("small", 2), queued_job("large", 9)))
    seen = await first(source([SUPERPOD, str(tmp_path)]).pictures())
    states = {gang.name: (gang.state, gang.position) for gang in seen.standing.gangs}
    assert states == {"research/Job/small": ("admitted", 0), "research/Job/large": ("waiting", 1)}


async def test_a_changed_file_is_read_again_and_what_it_changes_is_told(tmp_path: Path) -> None:
    """A Job comes, and is a decision; the time of the first ones stays."""
    jobs = tmp_path / "jobs.json"
    jobs.write_text(dump(queued_job("a", 9)))
    pictures = source([SUPERPOD, str(jobs)]).pictures()
    before = await first(pictures)
    jobs.write_text(dump(queued_job("a", 9), queued_job("b", 10)))
    after = await first(pictures)
    assert [entry.name for entry in before.decisions] == ["research/Job/a"]
    assert [(entry.name, entry.kind) for entry in after.decisions] == [
        ("research/Job/a", "Queued"),
        ("research/Job/b", "Queued"),
    ]
    assert after.decisions[0] == before.decisions[0]


async def test_a_bad_change_keeps_the_last_good_picture_and_says_so(tmp_path: Path) -> None:
    """With the file and what is wrong in it."""
    jobs = tmp_path / "jobs.json"
    jobs.write_text(dump(queued_job("a", 9)))
    pictures = source([SUPERPOD, str(jobs)]).pictures()
    before = await first(pictures)
    jobs.write_text("{")
    after = await first(pictures)
    assert after.standing == before.standing
    (line,) = after.health
    assert (line.state, "jobs.json" in line.message) == ("problem", True)


async def test_files_that_cannot_be_read_at_the_start_end_it(tmp_path: Path) -> None:
    """As for every command: there is nothing to show."""
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(InputError, match=r"bad\.yaml"):
        await first(source([str(tmp_path)]).pictures())
