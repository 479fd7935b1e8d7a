"""`bayplan reservations` as a user calls it: what is printed, and with which exit status."""

import asyncio
import json
import time

import pytest
import yaml

from planner.ledger.sqlite import SqliteLedger
from planner.manifests.reservation import reservation_from, reservation_manifest
from planner.model.errors import Where
from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation, reservation_id
from tests.webhook.kube.ledger.api_server import ApiServer
from webhook.cli.clusters import reservations
from webhook.cli.main import main
from webhook.kube.ledger.ledger import KubeLedger

NOW = float(int(time.time()))


def reservation(gang, rack, expires=NOW + 3600, mode="domain"):
    """A gang of two pods on the two nodes of a rack, which it holds."""
    nodes = (f"{rack}-n1", f"{rack}-n2")
    return Reservation(
        id=reservation_id(gang),
        gang=gang,
        topology="cluster",
        level="rack",
        domain=("z", rack),
        mode=mode,
        domains=(("z", rack),) if mode == "domain" else (),
        nodes=frozenset(nodes),
        assignments=tuple(Assignment("worker", node, 1) for node in nodes),
        requests=(("worker", {"cpu": 1500, "memory": 3 * 2**29, "nvidia.com/gpu": 8}),),
        fingerprint="f",
        created=NOW,
        expires=expires,
    )


TRAIN = reservation("default/Job/train", "r1")
SERVE = [reservation(f"ml/LeaderWorkerSet/serve/{index}", f"r{index + 2}") for index in range(2)]
SHARED = reservation("default/Pod/shell", "r9", mode="nodes")


async def fill(path, *reservations):
    """A ledger with these reservations."""
    ledger = SqliteLedger(path)
    for held in reservations:
        await ledger.reserve(held, 99, NOW)
    await ledger.close()


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """The file of a ledger with four reservations, which the environment names."""
    path = tmp_path / "bayplan.db"
    asyncio.run(fill(path, TRAIN, *SERVE, SHARED))
    monkeypatch.setenv("BAYPLAN_LEDGER", str(path))
    return path


def listed(capsys, *arguments):
    """The reservations that `list -o json` prints now."""
    capsys.readouterr()
    assert main(["reservations", "list", "-o", "json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)["items"]


def test_times_of_a_cluster_are_the_api_servers(monkeypatch, capsys):
    """Whatever this machine's clock says: by it, the reservation would be gone, or end an hour earlier."""
    server, hour = ApiServer(), 3600.0
    client = server.client()
    client.clock = lambda: NOW + 2 * hour

    async def connected(_):
        return client

    async def hold():
        book = KubeLedger(server.client())
        await book.start()
        await book.reflector.synced.wait()
        await book.reserve(reservation("default/Job/gone", "r1", NOW + hour), 99, NOW)
        await book.reserve(reservation("default/Job/live", "r2", NOW + 3 * hour), 99, NOW)
        await book.close()

    asyncio.run(hold())
    monkeypatch.setattr(reservations, "connect", connected)
    assert main(["reservations", "list", "--kubeconfig"]) == 0
    out = capsys.readouterr().out
    assert "in 3600 s" in out
    assert "Job/gone" not in out


def test_the_list_says_who_holds_what(ledger, capsys):
    """A line for each gang: what it holds, its pods and nodes, how long still."""
    assert main(["reservations", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["gang", "holds", "pods", "nodes", "state", "expires", "id"]
    assert "z/r1" in next(line for line in lines if "default/Job/train" in line)
    assert "parts of 2 nodes" in next(line for line in lines if "default/Pod/shell" in line)


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_what_is_printed_can_be_read_back(ledger, capsys, output, load):
    """The list is a List of Reservation objects that a cluster file may hold, and nothing is lost."""
    assert main(["reservations", "list", "-o", output]) == 0
    printed = load(capsys.readouterr().out)
    assert (printed["apiVersion"], printed["kind"]) == ("v1", "List")
    read = [reservation_from(item, Where("list")) for item in printed["items"]]
    assert sorted(read, key=by_id) == sorted([TRAIN, SHARED, *SERVE], key=by_id)


def by_id(held):
    """The order of the book."""
    return held.id


@pytest.mark.parametrize("held", [TRAIN, SHARED, reservation("a/b/c", "r", expires=None)])
def test_a_manifest_is_the_reservation(held):
    """Written and read, through YAML, a reservation is the same."""
    manifest = yaml.safe_load(yaml.safe_dump(reservation_manifest(held)))
    assert reservation_from(manifest, Where("file")) == held


def test_show_prints_one_gang_by_name_or_id(ledger, capsys):
    """Both the gang's name and the reservation's id find it."""
    for name in (TRAIN.gang, TRAIN.id):
        assert main(["reservations", "show", name]) == 0
        assert reservation_from(yaml.safe_load(capsys.readouterr().out), Where()) == TRAIN


def test_a_workload_finds_each_of_its_replicas(ledger, capsys):
    """A workload that is a gang for each replica is shown as all of them."""
    assert main(["reservations", "show", "ml/LeaderWorkerSet/serve", "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["items"]) == 2


def test_showing_what_is_not_there_is_status_1(ledger, capsys):
    """The name is repeated, with where to look."""
    assert main(["reservations", "show", "default/Job/absent"]) == 1
    assert "default/Job/absent holds nothing" in capsys.readouterr().err


def test_release_gives_the_rack_back(ledger, capsys):
    """What was held is said, and it is gone from the list."""
    assert main(["reservations", "release", TRAIN.gang]) == 0
    assert capsys.readouterr().out == "released z/r1, held by default/Job/train\n"
    assert TRAIN.gang not in {item["spec"]["gang"] for item in listed(capsys)}


def test_releasing_twice_is_status_1(ledger, capsys):
    """The second time nothing is there."""
    main(["reservations", "release", TRAIN.gang])
    assert main(["reservations", "release", TRAIN.gang]) == 1


def test_a_namespace_releases_nothing(ledger, capsys):
    """A name is a whole name: nobody loses a namespace by a slip."""
    assert main(["reservations", "release", "ml"]) == 1
    assert len(listed(capsys)) == 4


def test_one_missing_name_does_not_stop_the_others(ledger, capsys):
    """All that are there are released; the status says that one was not."""
    assert main(["reservations", "release", "x/y/z", TRAIN.gang]) == 1
    assert len(listed(capsys)) == 3


def test_expired_holds_are_not_listed(tmp_path, capsys):
    """What nobody claimed in time is nobody's."""
    path = tmp_path / "other.db"
    asyncio.run(fill(path, reservation("a/b/c", "r1", expires=NOW - 1)))
    assert listed(capsys, "--ledger", str(path)) == []


def test_a_ledger_that_is_not_there_is_bad_input(tmp_path, capsys):
    """A file that was named and is not there is status 2, and is not made."""
    path = tmp_path / "absent.db"
    assert main(["reservations", "list", "--ledger", str(path)]) == 2
    assert "absent.db: there is no ledger here" in capsys.readouterr().err
    assert not path.exists()


def test_before_the_first_reservation_the_list_is_empty(tmp_path, monkeypatch, capsys):
    """Without any ledger at the default place there is simply no reservation."""
    monkeypatch.delenv("BAYPLAN_LEDGER", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["reservations", "list"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "no reservation\n"
    assert str(tmp_path / "bayplan" / "bayplan.db") in captured.err


def test_a_file_that_is_no_ledger_is_told_without_a_traceback(tmp_path, capsys):
    """The message names the file and what it is not."""
    path = tmp_path / "notes.txt"
    path.write_text("not a ledger " * 100)
    assert main(["reservations", "list", "--ledger", str(path)]) == 1
    assert "notes.txt: it is no SQLite database" in capsys.readouterr().err


def test_wide_names_the_nodes_and_name_is_only_the_gang(ledger, capsys):
    """As kubectl's outputs of these names."""
    assert main(["reservations", "list", "-o", "wide"]) == 0
    wide = capsys.readouterr().out
    assert main(["reservations", "list", "-o", "name"]) == 0
    names = capsys.readouterr().out.split()
    assert wide.splitlines()[0].split()[-1] == "on"
    assert names
    assert all(name in wide and name.count("/") >= 2 for name in names)


def test_a_watched_list_is_printed_again_when_it_is_another(ledger, capsys, monkeypatch):
    """Until somebody stops it, as Ctrl-C does: here after the place of the first was given back."""
    monkeypatch.setattr(reservations, "LOOK_SECONDS", 0.01)
    looks = iter(range(100))

    async def sleep(seconds):
        if next(looks) == 0:
            book = SqliteLedger(ledger)
            await book.release(TRAIN.id)
            await book.close()
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr(reservations.asyncio, "sleep", sleep)
    assert main(["reservations", "list", "--watch", "-o", "name"]) == 130
    before, after = capsys.readouterr().out.split(TRAIN.gang)
    assert before.split() == []
    assert len(after.split()) == 2 * 3
