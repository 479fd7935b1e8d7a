"""`bayplan simulate`."""

import json
from xml.etree import ElementTree

import pytest

from webhook.cli import main

SMALL = ("simulate", "--days", "0.5", "--nodes", "16", "--nodes-per-rack", "4")


def test_the_table_has_a_line_for_each_strategy(capsys):
    """Shares, and waits by size; the first line says what was simulated."""
    assert main(SMALL) == 0
    out = capsys.readouterr().out
    assert out.startswith("0.5 days, 4 racks of 4 nodes, 64 GPUs")
    for name in ("first fit", "best fit", "pod by pod", "bayplan, nodes", "bayplan, domains"):
        assert out.count(f"\n{name} ") == 2


def test_the_plot_is_an_svg_with_every_strategy(capsys, tmp_path):
    """Well-formed, one line a strategy and panel."""
    file = tmp_path / "days.svg"
    assert main((*SMALL, "--strategy", "first-fit", "best-fit", "--plot", str(file))) == 0
    drawn = ElementTree.fromstring(file.read_text())
    assert len(drawn.findall("{http://www.w3.org/2000/svg}polyline")) == 4


def test_the_same_seed_gives_the_same_numbers(capsys):
    """And another seed others."""
    said = []
    for seed in ("1", "1", "2"):
        assert main((*SMALL, "--strategy", "nodes", "--seed", seed, "-o", "json")) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1] != said[2]
    assert said[0]["strategies"][0]["waits"][0]["gangs"] > 0


@pytest.mark.parametrize(
    "words", [("--nodes", "17"), ("--days", "0"), ("--load", "-1"), ("--nodes-per-rack", "0")]
)
def test_numbers_that_make_no_cluster_are_refused(words, capsys):
    """Exit status 2 and one line."""
    assert main((*SMALL, *words)) == 2
    assert capsys.readouterr().err.count("\n") == 1
