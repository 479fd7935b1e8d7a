"""A forged admission review has no effect, even if the webhook asks callers for no certificate.

These are the attacks of issue 14: anyone who reaches the Service posts a deletion of another tenant's gang,
creations for every rack, and a creation under another gang's name.
"""

from __future__ import annotations

import ssl
import time
import urllib.request
from collections.abc import Iterator

import orjson
import pytest

from tests.e2e.api import Json
from tests.e2e.processes import wait_until
from tests.e2e.replicas import Replicas, job, racks_of, reservations
from tests.e2e.serving import empty, replicas_of
from tests.e2e.stage import Cluster
from tests.webhook.calls import patched, review
from webhook.placement.hold import HOLD_SECONDS

JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
WATCHED_SECONDS = 6.0
"""How long nothing may happen after a forged call: the controller looks at least every 5 s."""


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Six racks of two nodes, watched by two replicas."""
    with replicas_of(cluster, tmp_path_factory.mktemp("forged"), racks=6, hosts=2) as replicas:
        yield replicas


@pytest.fixture(autouse=True)
def clean(serving: Replicas) -> Iterator[None]:
    """After each test, deletes all applied objects and waits until the reservations are gone."""
    yield
    empty(serving.api, JOBS)


def forge(serving: Replicas, path: str, obj: Json, **words: str) -> Json:
    """Posts a review that no API server sent to one of the replicas, and returns the response."""
    context = ssl.create_default_context(cafile=str(serving.certs / "ca-bundle.crt"))
    body = orjson.dumps(review(obj, **words))
    url = f"https://127.0.0.1:{serving.ports[0]}{path}"
    call = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(call, timeout=15, context=context) as answer:
        response: Json = orjson.loads(answer.read())["response"]
        return response


def claimed(serving: Replicas, gang: str) -> Json:
    """The reservation of a gang, once it is claimed."""
    wait_until(
        lambda: reservations(serving.api).get(gang, {}).get("status", {}).get("state") == "claimed", gang
    )
    return reservations(serving.api)[gang]


def test_a_forged_deletion_releases_nothing(serving: Replicas) -> None:
    """The gang is there with its UID, so it keeps its rack, and a thief gets another."""
    stored = serving.api.create(JOBS, job("victim", 2))
    before = claimed(serving, "research/Job/victim")
    assert forge(serving, "/validate", stored, operation="DELETE")["allowed"]
    serving.api.create(JOBS, job("thief", 2))
    deadline = time.monotonic() + WATCHED_SECONDS
    while time.monotonic() < deadline:
        held = reservations(serving.api)["research/Job/victim"]
        assert (held["metadata"]["uid"], held["spec"]) == (before["metadata"]["uid"], before["spec"])
        time.sleep(0.2)
    assert claimed(serving, "research/Job/thief")["spec"]["domain"] != before["spec"]["domain"]


def test_a_true_deletion_frees_the_rack_within_seconds(serving: Replicas) -> None:
    """The controller sees that the object is gone."""
    serving.api.create(JOBS, job("short", 2))
    claimed(serving, "research/Job/short")
    serving.api.delete(f"{JOBS}/short")
    wait_until(lambda: "research/Job/short" not in reservations(serving.api), "the release", 15)


def test_forged_creations_hold_the_racks_for_seconds_only(serving: Replicas) -> None:
    """No object follows, so no hold is ever claimed, and a true gang gets a rack when they end."""
    for number in range(6):
        forged = job(f"ghost-{number}", 2)
        answer = forge(serving, "/mutate", forged)
        assert answer["allowed"]
        stored = patched(forged, answer)
        stored["metadata"]["uid"] = f"00000000-0000-0000-0000-00000000000{number}"
        assert forge(serving, "/validate", stored)["allowed"]
    began = time.monotonic()
    assert len(reservations(serving.api)) == 6
    while reservations(serving.api):
        assert all(held["status"]["state"] == "held" for held in reservations(serving.api).values())
        assert time.monotonic() - began < HOLD_SECONDS + WATCHED_SECONDS
        time.sleep(0.2)
    serving.api.create(JOBS, job("honest", 2))
    claimed(serving, "research/Job/honest")


def test_a_forged_creation_under_anothers_name_takes_its_place_from_nobody(serving: Replicas) -> None:
    """Smaller, elsewhere, with a UID of its own: the gang that is there keeps what it holds."""
    serving.api.create(JOBS, job("victim", 2))
    before = claimed(serving, "research/Job/victim")
    noted = serving.api.get(f"{JOBS}/victim")["metadata"]["annotations"]
    smaller = job("victim", 1)
    moved = job("victim", 2, nodeSelector={"example.com/rack": "r6"})
    for forged in (smaller, moved):
        answer = forge(serving, "/mutate", forged)
        assert not answer["allowed"]
        assert "research/Job/victim is there already" in answer["status"]["message"]
        forged["metadata"]["uid"] = "00000000-0000-0000-0000-000000000001"
        forge(serving, "/validate", {**forged, "metadata": {**forged["metadata"], "annotations": noted}})
    held = claimed(serving, "research/Job/victim")
    assert (held["metadata"]["uid"], held["spec"], held["status"]["ownerUID"]) == (
        before["metadata"]["uid"],
        before["spec"],
        before["status"]["ownerUID"],
    )


def test_a_forged_suspension_releases_nothing(serving: Replicas) -> None:
    """An update that says that the gang is suspended; the stored one is not."""
    stored = serving.api.create(JOBS, job("victim", 2))
    before = claimed(serving, "research/Job/victim")
    suspended = {**stored, "spec": {**stored["spec"], "suspend": True}}
    body = review(suspended, operation="UPDATE", old=stored)["request"]
    assert body["oldObject"] == stored
    forge(serving, "/validate", suspended, operation="UPDATE", old=stored)  # type: ignore[arg-type]
    time.sleep(WATCHED_SECONDS)
    assert claimed(serving, "research/Job/victim")["metadata"]["uid"] == before["metadata"]["uid"]


def test_what_is_stored_is_claimed_by_its_own_uid(serving: Replicas) -> None:
    """The watch tells of the object, whichever replica was asked."""
    stored = serving.api.create(JOBS, job("true", 2))
    held = claimed(serving, "research/Job/true")
    assert held["status"]["ownerUID"] == stored["metadata"]["uid"]
    wait_until(lambda: len(racks_of(serving.api.items(PODS))) == 1, "its pods to run", 60)
