"""`bayplan simulate`."""

import json
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from planner.simulation.hall import Hall
from planner.simulation.jobs import Job
from planner.simulation.planned import PlannedStrategy
from webhook.cli import simulate
from webhook.cli.main import main
from webhook.report.figures.plot import queue_axis, time_marks, waits_axis

NO_NUMBERS = ("nan", "inf", "0", "-1", "many")
SMALL = ("simulate", "--days", "0.5", "--nodes", "16", "--nodes-per-rack", "4")


def test_the_table_has_a_line_for_each_strategy(capsys):
    """Shares, and waits by size, for each of two loads; the first line says what was simulated."""
    assert main(SMALL) == 0
    out = capsys.readouterr().out
    assert out.startswith("load 0.6: 0.5 days, 4 racks of 4 nodes, 64 GPUs")
    assert "\nload 0.8: 0.5 days, 4 racks of 4 nodes, 64 GPUs" in out
    for name in (
        "first fit",
        "best fit",
        "pod by pod",
        "bayplan, auto",
        "bayplan, nodes",
        "bayplan, domains",
    ):
        assert out.count(f"\n{name} ") == 4


def test_the_plot_is_an_svg_with_every_strategy(capsys, tmp_path):
    """Well-formed, one line a strategy and panel, for each load."""
    file = tmp_path / "days.svg"
    assert main((*SMALL, "--strategy", "first-fit", "best-fit", "--plot", str(file))) == 0
    drawn = ElementTree.fromstring(file.read_text())
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}polyline")) == 16


def test_the_same_seed_gives_the_same_numbers(capsys):
    """And another seed others."""
    reports = []
    for seed in ("1", "1", "2"):
        assert main((*SMALL, "--strategy", "nodes", "--seed", seed, "-o", "json")) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0] == reports[1] != reports[2]
    strategy = reports[0]["loads"][0]["strategies"][0]
    assert strategy["waits"][0]["gangs"] > 0
    assert set(strategy["wholeRackGangsStartable"]) == {"1", "2", "4"}


def test_several_seeds_are_averaged_and_their_spread_is_shown(capsys):
    """The mean with the least and the most; each seed's own figure in the JSON."""
    words = (*SMALL, "--load", "0.6", "--strategy", "nodes", "--seed", "1", "2")
    assert main(words) == 0
    assert "seeds 1, 2" in (out := capsys.readouterr().out)
    assert main((*words, "-o", "json")) == 0
    (strategy,) = json.loads(capsys.readouterr().out)["loads"][0]["strategies"]
    low, high = sorted(strategy["runningBySeed"])
    assert f"({low:.1%}–{high:.1%})" in out
    assert strategy["running"] == pytest.approx((low + high) / 2, abs=1e-4)


def test_nodes_that_fill_no_racks_are_refused(capsys):
    """Exit status 2 and one line, which says what would do."""
    assert main((*SMALL, "--nodes", "17")) == 2
    assert capsys.readouterr().err == "bayplan: --nodes: 17 nodes do not fill racks of 4; use a multiple\n"


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        *(
            (option, text, "is not a number above 0")
            for option in ("--days", "--load")
            for text in NO_NUMBERS
        ),
        ("--load", "60", "is not a load above 0 and at most 2; 60 percent of all GPU time is 0.6"),
        ("--nodes-per-rack", "0", "is not a count: use 1, 2, 3 …"),
        ("--hold-from", "few", "is not a count: use 1, 2, 3 …"),
        ("--seed", "-1", "is not a whole number: use 0, 1, 2 …"),
        ("--plot", "days.png", "is neither a .svg nor a .html file"),
        ("--plot", "no-such-folder/days.svg", "is in a folder that does not exist"),
    ],
)
def test_what_is_no_number_of_its_option_is_refused_at_once(option, text, words, capsys):
    """In words for people: nothing is simulated as nothing, or for ever."""
    with pytest.raises(SystemExit) as ended:
        main((*SMALL, option, text))
    assert ended.value.code == 2
    assert f"argument {option}: '{text}' {words}" in capsys.readouterr().err


def test_what_ships_is_simulated(capsys):
    """`auto` holds whole racks where a gang requires one, and of single pods what they use."""
    words = (*SMALL, "--load", "0.8", "--strategy", "auto", "nodes", "-o", "json")
    assert main(words) == 0
    auto, nodes = json.loads(capsys.readouterr().out)["loads"][0]["strategies"]
    assert auto["strategy"] == "bayplan, auto"
    assert auto["heldIdle"] > nodes["heldIdle"] == 0


@pytest.mark.parametrize("job_gpus", [1, 4])
def test_a_single_pod_is_planned_and_held_as_in_a_cluster(job_gpus):
    """By a reservation of its own, of its node alone where it takes all of it."""
    floor = Hall(2, 2, 4)
    strategy = PlannedStrategy(floor, "auto", 64)
    job = Job(1, 1, job_gpus, 0.0, 60.0)
    assert strategy.place(job, floor) == [(0, job_gpus)]
    (reservation,) = strategy._snapshot.reservations
    assert [(seat.node, seat.count) for seat in reservation.assignments] == [("n0", 1)]
    assert len(reservation.touched) == 1
    strategy.release(job)
    assert strategy._snapshot.reservations == ()


def test_no_strategy_flattens_the_others():
    """On the axis of waits, minutes and weeks are both to be seen, and each of them between two marks."""
    axis = waits_axis(700.0)
    assert [words for words, _ in axis.marks] == ["1 min", "10 min", "1 h", "10 h", "100 h", "1,000 h"]
    shares = [axis.share(hours) for hours in (0.1, 1, 20, 60, 700)]
    assert all(later - earlier > 0.08 for earlier, later in pairwise(shares))
    assert 0 < shares[0] < shares[-1] <= 1
    assert (axis.share(0), waits_axis(0).share(5)) == (0, 1)


def test_a_queue_of_a_few_is_seen_beside_one_of_a_thousand():
    """The axis of those who wait is even up to one gang, and logarithmic above."""
    axis = queue_axis(700.0)
    assert [words for words, _ in axis.marks] == ["0", "1", "10", "100", "1,000"]
    assert [axis.share(count) for count in (0, 0.5, 1, 10, 1000)] == pytest.approx([0, 0.125, 0.25, 0.5, 1])
    assert [words for words, _ in queue_axis(0).marks] == ["0", "1", "10"]


@pytest.mark.parametrize(
    ("seconds", "marks"),
    [
        (30 * 86400, ["day 0", "day 5", "day 10", "day 15", "day 20", "day 25", "day 30"]),
        (43200, ["0 h", "2 h", "4 h", "6 h", "8 h", "10 h", "12 h"]),
        (3000, ["0 min", "10 min", "20 min", "30 min", "40 min", "50 min"]),
        (4, ["0 s", "1 s", "2 s", "3 s", "4 s"]),
    ],
)
def test_the_axis_of_time_has_marks_at_whole_steps(seconds, marks):
    """About six, in the unit that suits."""
    shown = time_marks(seconds)
    assert [words for words, _ in shown] == marks
    assert max(place for _, place in shown) <= seconds


def test_the_page_has_the_figures_and_the_plot(capsys, tmp_path):
    """One file that loads nothing, with a caption on each table and all strategies."""
    file = tmp_path / "days.html"
    assert main((*SMALL, "--strategy", "first-fit", "auto", "--plot", str(file))) == 0
    text = file.read_text()
    assert text.count("<caption>") == 4
    assert text.count("<polyline") == 16
    assert text.count('<th scope="row">bayplan, auto</th>') == 4
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "<script" not in text


def test_progress_is_told_where_nobody_looks_at_a_terminal(capsys, monkeypatch):
    """A line now and then; a short run is silent."""
    assert main((*SMALL, "--strategy", "first-fit")) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(simulate, "LINE_SECONDS", 0.0)
    assert main((*SMALL, "--strategy", "first-fit", "--seed", "1", "2")) == 0
    lines = capsys.readouterr().err.splitlines()
    assert all(re.fullmatch(r"first-fit: \d+% simulated", line) for line in lines)
    assert len(lines) > 4
