"""The main job: every example as a review, first a dry run, then for real; what is stored and held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from tests.webhook.calls import EXAMPLES, Json, Serve, example, patched
from webhook.cli.cluster_files.watched import ClusterFiles
from webhook.files.reader import objects

ROWS = [
    row
    for row in yaml.safe_load((EXAMPLES.parents[1] / "tests" / "manifests" / "expected.yaml").read_text())
    if not row["manifest"].startswith("pods-")  # several objects: their own test below
]
PLACEMENT = "bayplan.dev/placement"
IDS = [f"{row['manifest']} on {'+'.join(row['clusters'])}" for row in ROWS]


def _placement(obj: dict[str, Any]) -> dict[str, Any]:
    return orjson.loads(obj["metadata"]["annotations"][PLACEMENT])  # type: ignore[no-any-return]


def _serving(serve: Serve, row: dict[str, Any]) -> Any:
    return serve(*(name.removesuffix(".yaml") for name in row["clusters"]))


@pytest.mark.parametrize("row", ROWS, ids=IDS)
async def test_each_example_ends_as_its_table_says(serve: Serve, row: dict[str, Any]) -> None:
    """Admitted or queued as planned, or refused with a message; warnings where they are due."""
    async with _serving(serve, row) as asked:
        response = await asked.mutate(example(row["manifest"].removesuffix(".yaml")))
    message = response.get("status", {}).get("message", "") + " ".join(response.get("warnings", ()))
    if row.get("refused"):
        assert not response["allowed"]
        assert len(message) > 40, "a refusal says why and what would work"
    else:
        assert response["allowed"], message
        wanted = "admitted" if "admitted" in row["decisions"] else "queued"
        obj = patched(example(row["manifest"].removesuffix(".yaml")), response)
        assert PLACEMENT not in obj["metadata"]["annotations"] or _placement(obj)["decision"] == wanted
    assert all(words in message for words in row.get("says", ()))


@pytest.mark.parametrize("row", ROWS, ids=IDS)
async def test_the_dry_run_and_the_real_thing_answer_alike(serve: Serve, row: dict[str, Any]) -> None:
    """The same review twice gives the same response; only the book differs."""
    obj = example(row["manifest"].removesuffix(".yaml"))
    async with _serving(serve, row) as asked:
        rehearsal = await asked.mutate(obj, dry_run=True, uid="one-uid")
        assert await asked.holders() == [], "a dry run reserves nothing"
        assert await asked.mutate(obj, uid="one-uid") == rehearsal


@pytest.mark.parametrize("row", [row for row in ROWS if not row.get("refused")], ids=str)
async def test_a_second_pass_changes_nothing(serve: Serve, row: dict[str, Any]) -> None:
    """What was stored is what would be stored again, with the reservation and without it."""
    obj = example(row["manifest"].removesuffix(".yaml"))
    async with _serving(serve, row) as asked:
        stored = patched(obj, await asked.mutate(obj, dry_run=True, uid="u"))
        assert "patch" not in await asked.mutate(stored, dry_run=True, uid="u"), "without the reservation"
        await asked.mutate(obj, uid="u")
        assert "patch" not in await asked.mutate(stored, uid="u"), "with it"


@pytest.mark.parametrize("row", [row for row in ROWS if not row.get("refused")], ids=str)
async def test_what_was_mutated_passes_the_validating_webhook(serve: Serve, row: dict[str, Any]) -> None:
    """The second webhook agrees with the first."""
    obj = example(row["manifest"].removesuffix(".yaml"))
    async with _serving(serve, row) as asked:
        stored = patched(obj, await asked.mutate(obj))
        assert (await asked.validate(stored))["allowed"]


async def test_a_gang_that_is_applied_holds_its_domain(serve: Serve) -> None:
    """Two whole nodes hold the rack that they lie in, and the next gang goes elsewhere."""
    async with serve("superpod-32") as asked:
        first = example("job-two-nodes-one-rack")
        second = example("job-two-nodes-one-rack")
        second["metadata"]["name"] = "another"
        first_place = _placement(patched(first, await asked.mutate(first)))
        second_place = _placement(patched(second, await asked.mutate(second)))
        assert first_place["reserves"] != second_place["reserves"]
        assert len(await asked.holders()) == 2


async def test_the_pods_of_a_gang_are_pinned_to_its_domain_and_find_its_reservation(serve: Serve) -> None:
    """The template carries the reservation's id and a required node affinity."""
    async with serve("superpod-32") as asked:
        obj = example("job-two-nodes-one-rack")
        stored = patched(obj, await asked.mutate(obj))
        template = stored["spec"]["template"]
        assert template["metadata"]["annotations"]["bayplan.dev/reservation"].startswith("bp-")
        rack = _placement(stored)["domain"][-1]
        affinity = template["spec"]["affinity"]["nodeAffinity"]
        assert rack in str(affinity["requiredDuringSchedulingIgnoredDuringExecution"])
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **template["metadata"],
                "generateName": "train-",
                "namespace": "research",
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "1", "controller": True}
                ],
            },
            "spec": template["spec"],
        }
        held = await asked.holders()
        response = await asked.mutate(pod)
        assert response["allowed"]
        assert "patch" not in response, "a mended template needs nothing more when its pods arrive"
        assert await asked.holders() == held, "a pod of a gang reserves nothing of its own"


async def test_a_hold_that_nobody_claims_expires_and_a_claimed_one_stays(serve: Serve) -> None:
    """The validating pass with the object's UID turns a hold into a claim."""
    async with serve("superpod-32") as asked:
        obj = example("job-two-nodes-one-rack")
        stored = patched(obj, await asked.mutate(obj))
        asked.now[0] += 10_000
        assert await asked.holders() == []
        stored = patched(obj, await asked.mutate(obj))
        stored["metadata"]["uid"] = "the-uid"
        await asked.validate(stored)
        asked.now[0] += 10_000
        assert len(await asked.holders()) == 1


async def test_deleting_the_workload_gives_the_place_back(serve: Serve) -> None:
    """DELETE on /validate releases, and a dry run of it does not."""
    async with serve("superpod-32") as asked:
        obj = example("job-two-nodes-one-rack")
        await asked.mutate(obj)
        await asked.validate(obj, operation="DELETE", dry_run=True)
        assert len(await asked.holders()) == 1
        await asked.validate(obj, operation="DELETE")
        assert await asked.holders() == []


async def test_an_update_of_a_running_job_never_touches_its_template(serve: Serve) -> None:
    """The API server refuses a change of an existing Job's template."""
    async with serve("superpod-32") as asked:
        obj = example("job-two-nodes-one-rack")
        labelled = example("job-two-nodes-one-rack")
        labelled["metadata"]["labels"] = {"team": "a"}
        response = await asked.mutate(labelled, operation="UPDATE", old=obj)
        assert patched(labelled, response)["spec"]["template"] == obj["spec"]["template"]


async def test_pods_of_a_gang_that_come_one_by_one_share_one_plan(serve: Serve) -> None:
    """`bayplan.dev/gang` with its size: the first pod reserves for all, the others find the place."""
    async with serve("superpod-32") as asked:
        nodes = set()
        for index in range(3):
            pod = _pod(f"w-{index}", {"bayplan.dev/gang": "train", "bayplan.dev/gang-size": "3"})
            response = await asked.mutate(pod)
            nodes.add(str(patched(pod, response)["spec"]["affinity"]))
            assert await asked.holders() == ["research/Gang/train"]
        assert len(nodes) == 1


async def test_a_pod_that_asks_for_less_than_a_seat_takes_one_of_its_gangs_seats(serve: Serve) -> None:
    """Prefill with 8 GPUs and decode with 4 in one rack: decode finds the place that prefill reserved."""
    async with serve("superpod-32") as asked:
        keys = {"bayplan.dev/gang": "serve", "bayplan.dev/gang-size": "2"}
        prefill, decode = _pod("prefill", keys), _pod("decode", keys, gpus=4)
        first = patched(prefill, await asked.mutate(prefill))
        second = patched(decode, await asked.mutate(decode))
        assert second["spec"]["affinity"] == first["spec"]["affinity"]
        assert await asked.holders() == ["research/Gang/serve"]
        assert "patch" not in await asked.mutate(second)


async def test_a_pod_that_asks_for_more_than_a_seat_never_takes_the_gangs_place(serve: Serve) -> None:
    """It is planned by itself, with a warning; the gang keeps what it holds."""
    async with serve("superpod-32") as asked:
        keys = {"bayplan.dev/gang": "train", "bayplan.dev/gang-size": "3"}
        await asked.mutate(_pod("w-0", keys, gpus=4))
        (before,) = (await asked.ledger.book(asked.now[0])).reservations
        response = await asked.mutate(_pod("odd", keys, gpus=8))
        assert response["allowed"]
        assert "more than a seat" in " ".join(response["warnings"])
        book = (await asked.ledger.book(asked.now[0])).reservations
        assert before in book
        assert {r.gang for r in book} == {"research/Gang/train", "research/Pod/odd"}


async def test_pods_of_a_podgroup_that_is_not_known_do_not_share_one_seat(serve: Serve) -> None:
    """Each is planned for itself: nobody knows how many there are."""
    async with serve("superpod-32") as asked:
        for name in ("one", "two"):
            await asked.mutate(_pod(name, {"pod-group-name": "unheard-of"}))
        assert await asked.holders() == ["research/Pod/one", "research/Pod/two"]


def _pod(name: str, annotations: dict[str, str], gpus: int = 8) -> dict[str, Any]:
    limits = {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": gpus}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "research", "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "pytorch", "resources": {"limits": limits}}]},
    }


def _recipe(folder: Path) -> tuple[ClusterFiles, Json, list[Json]]:
    """A cluster with a Run:ai PodGroup, that PodGroup, and its three pods."""
    group, *pods = (
        document.value for document in objects([str(EXAMPLES / "pods-disaggregated-serving.yaml")])
    )
    file = folder / "group.yaml"
    file.write_text(yaml.safe_dump(group))
    return ClusterFiles([str(EXAMPLES / "clusters" / "superpod-32.yaml"), str(file)]), group, pods


async def test_a_podgroup_among_the_cluster_files_tells_its_pods_how_many_they_are(
    serve: Serve, tmp_path: Path
) -> None:
    """minMember and the scope of a Run:ai PodGroup hold for pods that name it."""
    source, _, pods = _recipe(tmp_path)
    async with serve(cluster=source) as asked:
        stored = [patched(pod, await asked.mutate(pod)) for pod in pods]
        assert await asked.holders() == ["inference/PodGroup/serve-recipe"]
        assert len({str(pod["spec"]["affinity"]) for pod in stored}) == 1


@pytest.mark.parametrize(
    "name", ["jobset-64-gpus", "pytorchjob-16-gpus", "mpijob-32-gpus", "job-six-nodes-one-rack"]
)
async def test_applying_the_same_manifest_again_keeps_what_was_injected(serve: Serve, name: str) -> None:
    """A merge patch replaces whole lists; the update gets back what admission had written there."""
    async with serve("superpod-32") as asked:
        obj = example(name)
        stored = patched(obj, await asked.mutate(obj))
        again = {**obj, "metadata": {**stored["metadata"]}}
        update = await asked.mutate(again, operation="UPDATE", old=stored)
        assert update["allowed"]
        assert patched(again, update)["spec"] == stored["spec"]


async def test_a_generated_pods_place_is_given_back_when_it_is_deleted(serve: Serve) -> None:
    """Its reservation has no name to go by, but the UID that claimed it."""
    async with serve("superpod-32") as asked:
        pod = _pod("x", {})
        del pod["metadata"]["name"]
        pod["metadata"]["generateName"] = "notebook-"
        stored = patched(pod, await asked.mutate(pod, uid="u"))
        stored["metadata"] |= {"name": "notebook-abc", "uid": "pod-uid"}
        ids = stored["metadata"]["annotations"]["bayplan.dev/reservation"]
        await asked.validate(stored)
        (held,) = (await asked.ledger.book(asked.now[0])).reservations
        assert (held.id, held.owner_uid) == (ids, "pod-uid")
        await asked.validate(stored, operation="DELETE")
        assert await asked.holders() == []


async def test_a_pod_that_is_deleted_takes_nothing_of_its_jobs_place_with_it(serve: Serve) -> None:
    """Its replacement needs that place."""
    async with serve("superpod-32") as asked:
        obj = example("job-two-nodes-one-rack")
        template = patched(obj, await asked.mutate(obj))["spec"]["template"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "1", "controller": True}
        metadata = {**template["metadata"], "name": "x-0", "uid": "pod-uid", "namespace": "research"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "ownerReferences": [owner]}}
        pod["spec"] = template["spec"]
        await asked.validate(pod)
        held = await asked.holders()
        await asked.validate(pod, operation="DELETE")
        assert await asked.holders() == held != []


async def test_a_podgroup_that_is_deleted_gives_back_what_its_pods_held(serve: Serve, tmp_path: Path) -> None:
    """A pod that goes may come again; when the PodGroup goes, the gang is over."""
    source, group, pods = _recipe(tmp_path)
    async with serve(cluster=source) as asked:
        for number, pod in enumerate(pods):
            stored = patched(pod, await asked.mutate(pod))
            stored["metadata"]["uid"] = f"pod-{number}"
            await asked.validate(stored)
        held = await asked.holders()
        await asked.validate(stored, operation="DELETE")
        assert await asked.holders() == held == ["inference/PodGroup/serve-recipe"]
        await asked.validate(group, operation="DELETE")
        assert await asked.holders() == []


async def test_a_pod_does_not_claim_the_place_of_its_job(serve: Serve) -> None:
    """The hold stays the Job's: its own validating pass, or the controller, claims it with the Job's UID."""
    async with serve("superpod-32") as asked:
        obj = example("job-two-nodes-one-rack")
        stored = patched(obj, await asked.mutate(obj))
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "1", "controller": True}
        template = stored["spec"]["template"]
        metadata = {**template["metadata"], "name": "x-0", "uid": "pod-uid", "namespace": "research"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "ownerReferences": [owner]}}
        await asked.validate({**pod, "spec": template["spec"]})
        (held,) = (await asked.ledger.book(asked.now[0])).reservations
        assert (held.state, held.owner_uid) == ("held", "")
        stored["metadata"]["uid"] = "job-uid"
        await asked.validate(stored)
        (held,) = (await asked.ledger.book(asked.now[0])).reservations
        assert (held.state, held.owner_uid) == ("claimed", "job-uid")
