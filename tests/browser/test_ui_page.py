"""The live page in Chromium, on a real server: `make browser` runs this, as test_report_page.py.

`BAYPLAN_SHOTS=FOLDER` keeps the screenshots.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import struct
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation, reservation_id
from tests.builders import amounts, racks
from tests.webhook.cli.cluster_files.test_file_source import JOBS, SUPERPOD, dump, queued_job, source
from tests.webhook.ui.pictures import two_tenants
from webhook.kube.gang_standing import ClusterStanding, GangStanding
from webhook.ui.document import Document, document
from webhook.ui.feed import Feed
from webhook.ui.gate import KeyGate
from webhook.ui.http import Page, serve
from webhook.ui.picture import DecisionEntry, HealthLine, Picture, PolicyCounts

TOOLS = os.environ.get("BAYPLAN_BROWSER", "")
pytestmark = pytest.mark.skipif(not TOOLS, reason="needs Chromium: run `make browser`")

ROOT = Path(__file__).parents[2]
WIDTHS, THEMES, PAGES = (360, 800, 1440), ("light", "dark"), ("plain", "chosen")
KEY = "key-of-the-tests"
HOSTILE = (
    '"><script>document.title = "x"</script>',
    "\x1b[2J\u202egnp.exe",
    "w" * 10_000,
    "<img src=http://example.com/x>",
)


async def pictures_of(*seen: Picture) -> AsyncIterator[Picture]:
    """These, at once."""
    for picture in seen:
        yield picture


@contextmanager
def served(pictures: AsyncIterator[Picture] | None, *turns: Document) -> Iterator[str]:
    """The address of a page of these pictures, or one whose document turns four times a second."""
    ready, port = threading.Event(), 0
    loop = asyncio.new_event_loop()

    async def run() -> None:
        nonlocal port
        feed = Feed()
        page = await serve(Page(feed, KeyGate(KEY)), "127.0.0.1", 0)
        port = page.port
        following = asyncio.create_task(feed.follow(pictures) if pictures is not None else turn(feed))
        await feed.newer(0, 120)
        ready.set()
        await stopped.wait()
        following.cancel()
        await page.stop()

    async def turn(feed: Feed) -> None:
        while True:
            for whole in turns:
                feed.publish(two_tenants(), whole)
                await asyncio.sleep(0.25)

    stopped = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    assert ready.wait(120)
    try:
        yield f"http://127.0.0.1:{port}/#key={KEY}"
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()


def watch(folder: Path, task: str, url: str, **order: object) -> Any:
    """What Chromium saw."""
    path = folder / f"{task}.json"
    shots, chromium = os.environ.get("BAYPLAN_SHOTS", ""), shutil.which("chromium") or ""
    path.write_text(json.dumps({"task": task, "url": url, "shots": shots, "chromium": chromium, **order}))
    script = Path(__file__).with_name("watch.mjs")
    ran = subprocess.run(["node", str(script), TOOLS, str(path)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def hostile() -> Picture:
    """What a person may write into names and messages."""
    snapshot = racks(1, 4)
    gangs = tuple(
        GangStanding(
            f"{name}/Job/{name}",
            "starting",
            reservation=reservation(snapshot, f"{name}/Job/{name}", place, 1),
        )
        for place, name in enumerate(HOSTILE)
    )
    held = snapshot
    for gang in gangs:
        assert gang.reservation is not None
        held = held.with_reservation(gang.reservation)
    decisions = tuple(DecisionEntry(name, 1.0, name, name, name, True, name) for name in HOSTILE)
    policies = tuple(PolicyCounts(name, {name: {"fail": 1}}) for name in HOSTILE)
    health = tuple(HealthLine(name, "problem", name) for name in HOSTILE)
    standing = ClusterStanding(held, gangs, HOSTILE[0], (), 1.0)
    return Picture(standing, HOSTILE[2], decisions, policies, HOSTILE, health)


def reservation(snapshot: Snapshot, gang: str, first: int, count: int) -> Reservation:
    """The gang holds `count` whole nodes from the one at `first` on."""
    nodes = list(snapshot.nodes)[first : first + count]
    assignments = tuple(Assignment("worker", node, 1) for node in nodes)
    return Reservation(
        reservation_id(gang), gang, "topo", "", (), "nodes", (), frozenset(),
        assignments, (("worker", amounts(gpu=8)),), "x", created=1.0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """What Chromium saw of each page at each width in each theme."""
    folder = tmp_path_factory.mktemp("looks")
    shown: dict[str, Any] = {}
    medium, odd = "research/Job/pretrain-medium", f"{HOSTILE[0]}/Job/{HOSTILE[0]}"
    for name, gang, pictures in (
        ("jobs", medium, source([SUPERPOD], *JOBS).pictures()),
        ("hostile", odd, pictures_of(hostile())),
    ):
        with served(pictures) as url:
            options = {
                "name": name,
                "gang": gang,
                "ready": "bay-gangs tbody tr",
                "widths": WIDTHS,
                "themes": THEMES,
            }
            shown[name] = watch(folder, "looks", url, **options)
    return shown


@pytest.fixture(
    params=[(n, p, w, t) for n in ("jobs", "hostile") for p in PAGES for w in WIDTHS for t in THEMES], ids=str
)
def look(request: pytest.FixtureRequest, looks: Mapping[str, Any]) -> Mapping[str, Any]:
    """One page at one width in one theme."""
    name, *rest = request.param
    (seen,) = (seen for seen in looks[name] if [seen["page"], seen["width"], seen["theme"]] == rest)
    return {**seen, "hostile": name == "hostile"}


def test_nothing_sticks_out_and_no_head_is_broken(look: Mapping[str, Any]) -> None:
    """The page is as wide as the screen, and a column's head is one line."""
    assert (look["overflow"], look["sticksOut"], look["brokenHeads"]) == (False, [], [])


def test_no_word_is_broken(look: Mapping[str, Any]) -> None:
    """In lists and in what is chosen; names break behind their slashes. Hostile ones have no better place."""
    assert look["hostile"] or look["brokenWords"] == []


def test_the_console_is_empty_and_nothing_is_asked_for_elsewhere(look: Mapping[str, Any]) -> None:
    """No error, no blocked script, no request to another server."""
    assert look["console"] == []


def test_axe_finds_no_fault(look: Mapping[str, Any]) -> None:
    """Contrast, names, roles, headings and landmarks."""
    assert look["axe"] == []


@pytest.mark.parametrize("name", ["jobs", "hostile"])
def test_light_and_dark_are_two_grounds(name: str, looks: Mapping[str, Any]) -> None:
    """The theme is the reader's."""
    grounds = {(seen["theme"], seen["ground"]) for seen in looks[name]}
    assert len(grounds) == len({ground for _, ground in grounds}) == 2


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """The page of four manifests on a superpod, used."""
    with served(source([SUPERPOD], *JOBS).pictures()) as url:
        options = {
            "gang": "research/Job/pretrain-medium",
            "search": "mpijob",
            "ready": "bay-gangs tbody tr",
            "tabs": 40,
        }
        seen: Mapping[str, Any] = watch(tmp_path_factory.mktemp("used"), "use", url, **options)
    return seen


def test_a_click_leads_from_a_gang_to_its_rack_and_back(used: Mapping[str, Any]) -> None:
    """Its racks are marked on the map meanwhile; the browser's own button goes back too."""
    gang = "research/Job/pretrain-medium"
    assert used["steps"] == [gang, "rack-3", gang, "rack-3"]
    assert used["marked"] == ["rack-3"]
    assert used["console"] == []


def test_the_worth_of_a_place_is_told(used: Mapping[str, Any]) -> None:
    """In the sentence of `bayplan report`."""
    assert "All-reduce of 1 GB: 8.25 ms" in used["worth"]


def test_search_leaves_the_gangs_and_racks_in_which_the_word_is(used: Mapping[str, Any]) -> None:
    """One of two gangs, and the one rack that it holds."""
    assert (used["before"], used["searched"]) == (3, {"gangs": 1, "bright": ["rack-1"]})


def test_each_decision_has_its_time(used: Mapping[str, Any]) -> None:
    """As many times as rows."""
    assert used["times"]
    assert all(moment.startswith("20") for moment in used["times"])


def test_a_long_message_is_whole_where_it_is_unfolded(used: Mapping[str, Any]) -> None:
    """Its end is there, under the beginning."""
    shut, whole = (" ".join(text.split()) for text in used["folded"])
    assert "topology-block" not in shut
    assert whole.startswith(shut)
    assert whole.endswith("or required at cloud.provider.com/topology-block.")


def test_the_page_tells_queue_policies_and_health(used: Mapping[str, Any]) -> None:
    """What waits and for what, what policies did, and that all is well."""
    texts = used["texts"]
    assert "research/JobSet/pretrain-large" in texts["bay-queue"]
    assert "reserved by research/Job/pretrain-medium" in texts["bay-queue"]
    assert "kai-queue" in texts["bay-policies"]
    assert texts["bay-policies"].startswith("revision ")
    assert "5 files read" in texts["bay-health"]
    assert "GPUs free" in texts["bay-summary"]


def test_the_keyboard_reaches_search_racks_and_lists(used: Mapping[str, Any]) -> None:
    """By Tab alone."""
    assert {"HEADER", "BAY-MAP", "BAY-QUEUE", "BAY-GANGS", "BAY-DECISIONS"} <= set(used["reached"])


def test_what_changes_in_the_cluster_shows_without_a_reload(tmp_path: Path) -> None:
    """A Job comes into the file."""
    jobs = tmp_path / "jobs.json"
    jobs.write_text(dump(queued_job("a", 9)))
    with served(source([SUPERPOD, str(jobs)]).pictures()) as url:
        text = dump(queued_job("a", 9), queued_job("b", 10))
        seen = watch(tmp_path, "live", url, ready="bay-gangs tbody tr", file=str(jobs), text=text)
    assert "research/Job/b" not in seen["before"]
    assert "research/Job/b" in seen["after"]
    assert "research/Job/b" in seen["decisions"]
    assert seen["console"] == []


def test_who_has_no_token_is_asked_for_it_and_keeps_it_in_the_tab(tmp_path: Path) -> None:
    """A wrong one is asked for again; a reload asks no more."""
    with served(pictures_of(two_tenants())) as url:
        seen = watch(tmp_path, "login", url.partition("#")[0], token=KEY)
    assert all("it has the key" in asked for asked in seen["asked"])


def test_the_picture_in_the_readme_is_small_and_can_be_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the four manifests of these tests; with `BAYPLAN_SHOTS` it is taken into that folder."""
    file = Path(os.environ.get("BAYPLAN_SHOTS", "") or tmp_path) / "ui.png"
    monkeypatch.chdir(ROOT)
    cluster, *jobs = (os.path.relpath(path, ROOT) for path in (SUPERPOD, *JOBS))
    with served(source([cluster], *jobs).pictures()) as url:
        order = {"gang": "research/Job/pretrain-medium", "ready": "bay-gangs tbody tr", "file": str(file)}
        watch(tmp_path, "picture", url, **order)
    for picture in (file, ROOT / "docs" / "ui.png"):
        data = picture.read_bytes()
        assert data.startswith(b"\x89PNG")
        assert len(data) < 150_000
        assert struct.unpack(">II", data[16:24]) == (1280, 720)


def turns(racks_of_eight: int, count: int) -> tuple[Document, Document]:
    """Racks of eight nodes, gangs of four; then 20 gangs stand elsewhere, 20 more wait."""
    snapshot = racks(racks_of_eight, 8, block=50)
    return document(_of_gangs(snapshot, count, 0)), document(_of_gangs(snapshot, count, 20))


def _of_gangs(snapshot: Snapshot, count: int, moved: int) -> Picture:
    names = [f"team-{n % 40}/Job/train-{n}" for n in range(count)]
    placed = names[: count - 100 - moved]
    places = {name: 4 * (n + (count - 50 if n < moved else 0)) for n, name in enumerate(placed)}
    holds = [reservation(snapshot, name, place, 4) for name, place in places.items()]
    gangs = [GangStanding(held.gang, "running", bound=4, reservation=held) for held in holds]
    waiting = [
        GangStanding(name, "waiting", created=1.0, position=n)
        for n, name in enumerate(names[len(placed) :], 1)
    ]
    standing = ClusterStanding(replace(snapshot, reservations=tuple(holds)), (*gangs, *waiting), "x", (), 1.0)
    decisions = tuple(
        DecisionEntry(f"{n}-{moved}", float(n), names[n % len(names)], "Reserved", "a place")
        for n in range(500)
    )
    return Picture(standing, f"{count} gangs", decisions)


def test_an_update_of_a_page_ten_times_as_large_changes_no_more_elements(tmp_path: Path) -> None:
    """20 gangs that move and 20 that wait, on 1,000 nodes with 200 gangs and on 10,000 with 2,000.

    How long that takes is bounded by `make bench` (`tests/bench/bench_page.py`).
    """
    seen = {}
    for racks_of_eight, gangs in ((125, 200), (1250, 2000)):
        with served(None, *turns(racks_of_eight, gangs)) as url:
            seen[gangs] = watch(tmp_path, "speed", url, runs=2, updates=8)
    for gangs, runs in seen.items():
        for run in runs:
            print(f"{gangs} gangs: {run['changes']:.0f} changes an update, cpu {run['cpu']} ms")
            print(f"  painted after {run['painted']:.0f} ms, updates {run['updates']} ms")
            assert run["tiles"] == 5 * gangs // 8
    changes = {gangs: max(run["changes"] for run in runs) for gangs, runs in seen.items()}
    assert 0 < changes[2000] < 1.5 * changes[200]
