"""The map of a topology: rows of nodes, and who is on each."""

from dataclasses import replace

import pytest

from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import cluster, gang, racks
from webhook.report.fabric_map import WITHOUT_LABELS, fabric_map
from webhook.report.fabric_text import LETTERS, drawn


def rows(snapshot, width=80, **words):
    """The map's lines, as they are read."""
    (topology,) = snapshot.topologies
    return [line.plain for line in drawn(fabric_map(snapshot, topology), width, **words)]


def holding(snapshot, *gangs):
    """The cluster with the place of each of these gangs reserved."""
    for group in gangs:
        taken = reservation_for(snapshot, group, plan(snapshot, group))
        assert taken is not None
        snapshot = snapshot.with_reservation(taken)
    return snapshot


def test_each_node_has_the_sign_of_what_is_on_it():
    """Full, in part, free, cordoned, not ready; free GPUs of the rack at the end."""
    drawing = cluster("r1: a used=8\nr1: b used=3\nr1: c\nr1: d cordoned\nr2: e notready")
    assert rows(drawing) == [
        "topo  5 nodes, 13 of 40 GPUs free, 2 cordoned or not ready",
        "  r1  # + . -  13 of 32 GPUs free",
        "  r2  -          0 of 8 GPUs free",
        "  #: full  +: partly in use  .: free  -: cordoned or not ready",
    ]


def test_a_gang_is_upper_case_where_its_pods_are_and_lower_case_on_what_it_holds():
    """Two pods hold a rack of three whole."""
    drawing = holding(racks(2, 3), gang(2, required="rack"))
    assert rows(drawing)[1:4] == [
        "  r1  A A a   0 of 24 GPUs free",
        "  r2  . . .  24 of 24 GPUs free",
        "  A default/Job/gang",
    ]


def test_levels_above_the_racks_are_lines_of_their_own():
    """Indented as they nest, each with its free GPUs."""
    assert rows(racks(4, 2, block=2))[1:4] == [
        "  b1         32 of 32 GPUs free",
        "    r1  . .  16 of 16 GPUs free",
        "    r2  . .  16 of 16 GPUs free",
    ]


def test_domains_of_the_very_same_nodes_are_one_row():
    """A rack with its NVLink domain, and the only zone beside the topology's name."""
    drawing = cluster("z/r1/v1: a b\nz/r2/v2: c", levels=("zone", "rack", "nvlink"))
    assert rows(drawing)[0].startswith("topo, z  3 nodes")
    assert [row.title for row in fabric_map(drawing, drawing.topologies[0]).rows] == ["r1/v1", "r2/v2"]


def test_nodes_without_labels_have_a_row():
    """A node with a block's label and no rack's is in no rack, and on the map."""
    drawing = cluster("b1/r1: a b\nb1/: c\nb2/r2: d", levels=("block", "rack"))
    assert rows(drawing)[3].startswith(f"    {WITHOUT_LABELS}  .")


def test_a_topology_of_hosts_alone_is_one_row():
    """Nothing stands above them."""
    drawing = cluster(": a b c", levels=())
    assert rows(drawing)[1] == "  all nodes  . . .  24 of 24 GPUs free"


@pytest.mark.parametrize("hosts", [20, 72, 300])
def test_a_wide_rack_goes_on_in_the_next_line(hosts):
    """Every node has a sign, and no line passes the width."""
    lines = rows(racks(2, hosts))
    assert max(map(len, lines)) <= 80
    assert sum(line.count(".") for line in lines[1:-1]) == 2 * hosts


def test_nodes_are_named_when_they_are_asked_for():
    """Each with its sign and its free GPUs."""
    lines = rows(cluster("r1: a used=5\nr1: b"), nodes=True)
    assert lines[2:4] == ["    + a  3 of 8 GPUs free", "    . b  8 of 8 GPUs free"]


def test_gangs_beyond_the_letters_share_a_sign_and_are_counted():
    """A letter never means two gangs."""
    count = len(LETTERS) + 3
    gangs = (gang(1, name=f"default/Job/g{i:02}", reserve="nodes") for i in range(count))
    lines = rows(holding(racks(1, count), *gangs))
    assert "  @ 3 further gangs" in lines
    signs = "".join(line[6:].split("  ")[0].replace(" ", "") for line in lines[1:] if "GPUs free" in line)
    assert signs.startswith(LETTERS)


def test_hostile_names_are_text():
    """A label that would steer a terminal, and one of ten thousand characters."""
    drawing = cluster("r1: a\nr2: b")
    evil = drawing.nodes["a"]
    for name in ("\x1b[2Jr1", "\u202er1", "[red]r1[/]", "r1\nr2", "r" * 10_000):
        hostile = drawing.with_node(replace(evil, labels={**evil.labels, "rack": name}))
        lines = rows(hostile)
        assert max(map(len, lines)) <= 80
        assert not any(sign in "".join(lines) for sign in "\x1b\u202e\n")
