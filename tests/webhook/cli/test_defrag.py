"""`bayplan defrag`: moves that free whole racks, or a gang's place, from files."""

from __future__ import annotations

import json

import pytest

from webhook.cli.main import main

CLUSTER = "docs/defragmentation/cluster.yaml"
GANG = "docs/defragmentation/gang.yaml"


def test_moves_are_printed_with_the_map_before_and_after(capsys):
    """Two racks are free afterwards, which nobody freed before."""
    assert main(["defrag", "--free", "2", "--level", "rack", "-c", CLUSTER]) == 0
    out = capsys.readouterr().out
    before, _, after = out.partition("\nafter\n")
    assert "r1  + ." in before
    assert "r1  . ." in after
    assert "r1, r2 are free" in after


def test_moves_as_json_name_pods_places_and_figures(capsys):
    """For a program that shows them."""
    assert main(["defrag", "--free", "1", "-c", CLUSTER, "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [move["pods"] for move in answer["moves"]] == [["team/chat-1"]]
    assert {"figure": "whole racks free", "before": 0, "after": 1} in answer["figures"]


def test_the_place_of_a_gang_in_a_file(capsys):
    """A gang of a whole rack; the pod that is moved does not go there."""
    assert main(["defrag", "-f", GANG, "-c", CLUSTER, "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["gang"]["decision"] == "admitted"
    places = {part["node"] for move in answer["moves"] for part in move["to"]}
    assert places.isdisjoint(answer["nodes"])


def test_what_cannot_be_freed_is_told_with_who_keeps_it(capsys):
    """Rack r4 has a pod that has not agreed; all may be restarted on request."""
    assert main(["defrag", "--free", "4", "-c", CLUSTER]) == 1
    assert "r4: team/Pod/index-1 has not agreed" in capsys.readouterr().out
    assert main(["defrag", "--free", "4", "-c", CLUSTER, "--restart-all"]) == 1
    assert "no other place" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--free", "1", "--level", "row"], "no topology has a level 'row'"),
        (["--for", "team/Job/none"], "no gang 'team/Job/none'"),
        (["--free", "1", "-t", "other"], "no topology 'other'"),
    ],
    ids=["level", "gang", "topology"],
)
def test_an_unknown_name_is_told(capsys, words: list[str], message: str):
    """Exit status 2, and what there is."""
    assert main(["defrag", *words, "-c", CLUSTER]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--free", "1", "-c", CLUSTER, "--apply"], "-c: files can only be looked at"),
        (["--undo", "-c", CLUSTER], "-c: files can only be looked at: leave it away with --undo"),
        (["--resume", "--apply"], "--apply: is there already in --resume"),
        (["-f", GANG, "-c", CLUSTER, "--level", "rack"], "--level: is for --free"),
        (["--for", "team/Job/x", "-c", CLUSTER, "-t", "hall"], "--topology: is for --free"),
        (["--undo", "--level", "rack"], "--level: is for --free"),
    ],
)
def test_options_that_would_have_no_effect_are_refused(capsys, words: list[str], message: str):
    """Exit status 2, before any cluster is looked at."""
    assert main(["defrag", *words]) == 2
    assert message in capsys.readouterr().err
