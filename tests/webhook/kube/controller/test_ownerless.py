"""Whether the API server stores an object that a reservation may belong to, of those that no watch shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.model.reservation import Reservation
from tests.builders import gang, racks
from tests.webhook.kube.ledger.api_server import ApiServer, Client
from tests.webhook.kube.worlds import NOW, booked, held, pod, with_book, work, world
from webhook.kube.api.client import ApiError
from webhook.kube.controller.ownerless import ownerless, with_stored_owner
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import LetIn, Release
from webhook.workloads.keys.annotation_keys import RESERVATION

PATHS = {"Job": ["/apis/batch/v1/jobs"], "Pod": ["/api/v1/pods"]}


def reservation_of(name: str, uid: str = "uid-of-its-own") -> Reservation:
    """A claimed reservation of one node."""
    return replace(held(racks(1, 1), gang(1, name=name)), owner_uid=uid)


def nothing(kind: str, key: str, version: str) -> bool:
    """The watches show nothing."""
    return False


async def stored(client: Client, collection: str, name: str, **annotations: str) -> dict[str, Any]:
    """Creates an object and returns it."""
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return await client.create(collection, {"metadata": metadata})


def test_an_object_that_was_never_seen_has_ten_seconds_to_come():
    """The validating pass claims before the object is stored, and another webhook may refuse it."""
    snapshot = booked(racks(2, 2), gang(1, name="default/Job/a"))
    assert ownerless(world(snapshot, now=NOW - 1), frozenset()) == ()
    assert ownerless(world(snapshot, now=NOW + 1), frozenset()) == snapshot.reservations


@pytest.mark.parametrize(("uid", "is_left"), [("uid-a", True), ("uid-of-the-former", False)])
def test_an_object_that_was_seen_is_looked_for_at_once_when_it_is_gone(uid, is_left):
    """But not a new one of the same name, which is about to be stored."""
    snapshot = booked(racks(2, 2), gang(1, name="default/Job/a"))
    (claimed,) = (replace(r, owner_uid="uid-a") for r in snapshot.reservations)
    left = ownerless(world(with_book(snapshot, claimed)), frozenset({(claimed.id, uid)}))
    assert left == ((claimed,) if is_left else ())


JOBS, PODS = "/apis/batch/v1/namespaces/default/jobs", "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("gang_name", "collection", "name", "is_owner"),
    [
        ("default/Job/a", JOBS, "a", True),
        ("default/Job/a", JOBS, "b", False),
        ("default/Job/a", PODS, "a", False),
        ("default/Job/a/0", JOBS, "a", True),
        ("other/Job/a", JOBS, "a", False),
        ("default/Pod/a", PODS, "a", True),
        ("default/PodGroup/a", JOBS, "a", False),
    ],
)
async def test_an_object_of_the_kind_and_name_may_be_the_owner(gang_name, collection, name, is_owner):
    """Those of another name are not."""
    client, held_by = ApiServer().client(), reservation_of(gang_name)
    await stored(client, collection, name)
    assert await with_stored_owner(client, PATHS, nothing, [held_by]) == ({held_by.id} if is_owner else set())


async def test_the_object_whose_uid_claimed_it_is_the_owner_under_any_name():
    """An object with `generateName` is planned before it has its name."""
    client = ApiServer().client()
    document = await stored(client, JOBS, "train-x7k2p")
    held_by = reservation_of("default/Job/train-generated", document["metadata"]["uid"])
    assert await with_stored_owner(client, PATHS, nothing, [held_by]) == {held_by.id}


@pytest.mark.parametrize(("seen", "is_owner"), [("1", False), ("0", True), ("", True)])
async def test_an_object_that_the_watches_show_in_its_version_is_no_owner(seen, is_owner):
    """A Job that was suspended is stored, and of no gang; in an older version it may not have been."""
    client, held_by = ApiServer().client(), reservation_of("default/Job/a")
    await stored(client, JOBS, "a")

    def shows(kind: str, key: str, version: str) -> bool:
        return (kind, key, version) == ("Job", "default/a", seen)

    owned = await with_stored_owner(client, PATHS, shows, [held_by])
    assert owned == ({held_by.id} if is_owner else set())


async def test_a_pod_that_has_ended_is_no_owner():
    """Its gang has no use of the place any more."""
    client, held_by = ApiServer().client(), reservation_of("default/Pod/a")
    metadata = {"name": "a", "namespace": "default"}
    await client.create(PODS, {"metadata": metadata, "status": {"phase": "Succeeded"}})
    assert await with_stored_owner(client, PATHS, nothing, [held_by]) == set()


@pytest.mark.parametrize("collection", [JOBS, PODS])
async def test_a_gang_that_objects_join_lives_as_long_as_one_of_any_kind_names_it(collection):
    """Between two retries a Job has no pod."""
    client, held_by = ApiServer().client(), reservation_of("default/PodGroup/ring")
    await stored(client, collection, "member", **{RESERVATION: held_by.id})
    assert await with_stored_owner(client, PATHS, nothing, [held_by]) == {held_by.id}


@pytest.mark.parametrize(("status", "is_kept"), [(500, True), (403, True), (404, False)])
async def test_what_cannot_be_read_may_be_stored(status, is_kept):
    """A kind that is not served (404) has no objects."""
    client, held_by = ApiServer().client(), reservation_of("default/Job/a")

    async def failing(method: str, path: str) -> None:
        raise ApiError(status, "Failure", path)

    client.before = failing
    assert await with_stored_owner(client, PATHS, nothing, [held_by]) == ({held_by.id} if is_kept else set())


async def test_the_objects_of_a_namespace_are_read_once_for_all_reservations():
    """Many may be deleted at once."""
    client = ApiServer().client()
    await with_stored_owner(client, PATHS, nothing, [reservation_of(f"default/Job/{n}") for n in range(5)])
    assert client.calls == [("GET", JOBS)]


@pytest.mark.parametrize(
    ("pods", "owner", "kept"), [(4, "uid-former", 0), (2, "uid-former", 1), (4, "uid-a", 1)]
)
def test_a_waiting_gang_is_not_let_in_to_the_place_of_a_smaller_one_of_its_name(
    pods: int, owner: str, kept: int
) -> None:
    """The Job was applied again, larger, between two rounds. A place of its size, or its own, is kept."""
    former = replace(held(racks(2, 2), gang(2, name="default/Job/a", required="rack")), owner_uid=owner)
    again = work(gang(pods, name="default/Job/a"), queued=True)
    gated = tuple(pod(f"a-{index}", "a") for index in range(pods))
    actions = reconcile(world(with_book(racks(2, 2), former), works=(again,), pods=gated))
    released = [action.reservation for action in actions if isinstance(action, Release)]
    let_in = [action.reservation for action in actions if isinstance(action, LetIn)]
    assert (released, let_in) == (([], [former]) if kept else ([former], []))
