"""`bayplan simulate`."""

import json
from xml.etree import ElementTree

import pytest

from webhook.cli.main import main

SMALL = ("simulate", "--days", "0.5", "--nodes", "16", "--nodes-per-rack", "4")


def test_the_table_has_a_line_for_each_strategy(capsys):
    """Shares, and waits by size, for each of two loads; the first line says what was simulated."""
    assert main(SMALL) == 0
    out = capsys.readouterr().out
    assert out.startswith("load 0.6: 0.5 days, 4 racks of 4 nodes, 64 GPUs")
    assert "\nload 0.8: 0.5 days, 4 racks of 4 nodes, 64 GPUs" in out
    for name in ("first fit", "best fit", "pod by pod", "bayplan, nodes", "bayplan, domains"):
        assert out.count(f"\n{name} ") == 4


def test_the_plot_is_an_svg_with_every_strategy(capsys, tmp_path):
    """Well-formed, one line a strategy and panel, for each load."""
    file = tmp_path / "days.svg"
    assert main((*SMALL, "--strategy", "first-fit", "best-fit", "--plot", str(file))) == 0
    drawn = ElementTree.fromstring(file.read_text())
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}polyline")) == 8


def test_the_same_seed_gives_the_same_numbers(capsys):
    """And another seed others."""
    said = []
    for seed in ("1", "1", "2"):
        assert main((*SMALL, "--strategy", "nodes", "--seed", seed, "-o", "json")) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1] != said[2]
    strategy = said[0]["loads"][0]["strategies"][0]
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


@pytest.mark.parametrize(
    "words", [("--nodes", "17"), ("--days", "0"), ("--load", "-1"), ("--nodes-per-rack", "0")]
)
def test_numbers_that_make_no_cluster_are_refused(words, capsys):
    """Exit status 2 and one line."""
    assert main((*SMALL, *words)) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("words", [("--days", "nan"), ("--days", "inf"), ("--load", "nan"), ("--load", "-1")])
def test_times_and_loads_that_are_no_finite_number_are_refused(words, capsys):
    """Not simulated as nothing, or for ever."""
    assert main((*SMALL, "--strategy", "nodes", *words)) == 2
    assert "days and load must be above zero, and finite" in capsys.readouterr().err
