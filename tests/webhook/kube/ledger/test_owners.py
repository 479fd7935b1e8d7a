"""Finding the owner of an expired reservation: the calls to the API server, and their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from planner.model.reservation import Reservation
from tests.planner.ledger.books import whole
from tests.webhook.kube.ledger.api_server import ApiServer
from tests.webhook.kube.ledger.replicas import NOW, run, started
from webhook.kube.api.client import Api, Json
from webhook.kube.ledger.owners import StoredOwners
from webhook.workloads.keys.annotation_keys import RESERVATION

PODS = "/api/v1/namespaces/{}/pods"
BATCH: dict[str, Any] = {
    "/apis": {"groups": [{"name": "batch", "preferredVersion": {"version": "v1"}, "versions": []}]},
    "/apis/batch/v1": {"resources": [{"name": "jobs"}, {"name": "cronjobs"}]},
}


class Lists(Api):
    """An API server of stored objects by list; `asked` counts the calls by path and query."""

    def __init__(self, stored: Mapping[str, list[Json]] = {}) -> None:
        self.stored = stored
        self.asked: Counter[str] = Counter()

    async def get(self, path: str, **query: str) -> Json:
        """Discovery."""
        self.asked[path] += 1
        return BATCH[path]  # type: ignore[no-any-return]

    async def list(
        self, path: str, keep: Callable[[Json], Any] = dict, **query: str
    ) -> tuple[list[Any], str]:
        """The objects of a list that a field selector of a name chooses."""
        self.asked[" ".join((path, *query.values()))] += 1
        name = query.get("fieldSelector", "").partition("=")[2]
        items = [item for item in self.stored.get(path, []) if name in ("", item["metadata"]["name"])]
        return list(map(keep, items)), "1"


def stored(name: str, *reservations: str) -> Json:
    """An object that names these reservations."""
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "annotations": {RESERVATION: ",".join(reservations)}}
    }


def hold(gang: str, rack: str = "r1") -> Reservation:
    return whole(gang, rack)


async def test_a_hold_of_a_name_that_no_object_has_is_nobodys() -> None:
    """Somebody wrote it by hand: the API server is not asked."""
    api = cast(Api, None)  # any use of it fails
    assert await StoredOwners(api)(hold("odd")) == ""


@pytest.mark.parametrize("holds", [1, 7])
async def test_the_pods_of_a_namespace_are_listed_once_however_many_of_its_holds_ended(holds: int) -> None:
    """After an outage hundreds end together. Each Job is asked for by its name, the pods of all at once."""
    api = Lists()
    owner = StoredOwners(api)
    for number in range(holds):
        assert await owner(hold(f"team/Job/train-{number}")) == ""
    assert api.asked[PODS.format("team")] == 1
    assert api.asked["/apis/batch/v1"] == 1
    jobs = "/apis/batch/v1/namespaces/team/jobs metadata.name=train-{}"
    assert all(api.asked[jobs.format(number)] == 1 for number in range(holds))


async def test_each_namespace_is_listed_for_itself() -> None:
    """A pod of another namespace may name what it wants: it is nobody's owner here."""
    held = hold("team/Pod/one")
    api = Lists({PODS.format("other"): [stored("thief", held.id)], PODS.format("team"): []})
    owner = StoredOwners(api)
    assert await owner(hold("other/Pod/one")) == ""
    assert await owner(held) == ""


async def test_each_hold_has_the_pod_that_names_it() -> None:
    """A pod may name several, and of several pods that name one the first is the owner."""
    first, second, third = (hold(f"team/Pod/{name}") for name in ("a", "b", "c"))
    pods = [stored("x", first.id), stored("y", first.id, second.id), stored("z")]
    owner = StoredOwners(Lists({PODS.format("team"): pods}))
    assert [await owner(held) for held in (first, second, third)] == ["uid-x", "uid-y", ""]


async def test_a_new_round_sees_what_was_stored_meanwhile() -> None:
    held = hold("team/Pod/late")
    pods: list[Json] = []
    api = Lists({PODS.format("team"): pods})
    assert await StoredOwners(api)(held) == ""
    pods.append(stored("late", held.id))
    assert await StoredOwners(api)(held) == "uid-late"


def test_a_sweep_is_one_round_and_the_next_sweep_another() -> None:
    """Three holds end, two of them in one namespace; the last to end is swept a minute later."""
    api = Lists()

    async def script() -> None:
        ledger, _ = await started(ApiServer(), lambda: StoredOwners(api))
        for gang, rack, ends in (("a/Pod/x", "r1", 10), ("a/Pod/y", "r2", 10), ("a/Pod/z", "r10", 100)):
            await ledger.reserve(replace(hold(gang, rack), expires=NOW + ends), 0, NOW)
        assert len(await ledger.sweep(NOW + 60)) == 2
        assert api.asked[PODS.format("a")] == 1
        assert len(await ledger.sweep(NOW + 160)) == 1
        assert api.asked[PODS.format("a")] == 2

    run(script)
