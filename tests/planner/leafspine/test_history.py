"""Tests the history of ended gangs, by leaf."""

import pytest
import yaml

from planner.leafspine.history import MOST_LEAVES, Ended, ended, key_of, updated
from planner.manifests.cluster import read
from planner.manifests.settings import HISTORY_CONFIG
from planner.model.errors import InputError
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import cluster, gang, pod_set, racks, shape


def reservation(moment, group):
    return reservation_for(moment, group, plan(moment, group))


def test_a_gang_leaves_its_end_in_each_leaf_that_it_was_in():
    """Six hosts in racks of four: two leaves, by their whole path."""
    moment = racks(4, 4, block=2)
    end = ended(moment, reservation(moment, gang(6, required="block")), well=False)
    assert end == Ended(("topo/b1/r1", "topo/b1/r2"), False)


def test_a_leaf_that_fails_sinks_and_one_that_serves_again_rises():
    """By three tenths of what is left, each time."""
    once = updated({}, [Ended(("t/r1",), False)])
    assert once == {"t/r1": 0.7}
    assert updated(once, [Ended(("t/r1",), False), Ended(("t/r2",), True)]) == {"t/r1": 0.49}
    assert updated(once, [Ended(("t/r1",), True)]) == {"t/r1": 0.79}


def test_a_leaf_that_has_long_served_well_is_as_good_as_untried():
    """And is no longer kept."""
    history = {"t/r1": 0.2}
    for _ in range(40):
        history = updated(history, [Ended(("t/r1",), True)])
    assert history == {}


def test_of_too_many_leaves_the_best_are_forgotten():
    """What failed most stays."""
    many = {f"t/r{number}": number / (MOST_LEAVES + 2) for number in range(MOST_LEAVES + 1)}
    kept = updated(many, [])
    assert len(kept) == MOST_LEAVES
    assert f"t/r{MOST_LEAVES}" not in kept


def test_hosts_alone_have_no_leaf():
    """A topology that is gone, or knows only hosts, is not remembered."""
    moment = cluster("a: n1 n2", levels=())
    assert ended(moment, reservation(moment, gang(1)), well=False).leaves == ()
    other = racks(1, 2)
    assert ended(moment, reservation(other, gang(1)), well=False).leaves == ()


def config(content):
    metadata = {"name": HISTORY_CONFIG, "namespace": "bayplan-system"}
    data = {"history.yaml": content}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_the_config_map_that_is_written_is_read_again():
    """As the controller writes it and `kubectl get configmaps -o yaml` prints it."""
    history = updated({}, [Ended((key_of("t", ("s1", "leaf-1")),), False)])
    moment = read([("c.yaml", config(yaml.safe_dump(history)))])
    assert moment.base.settings.history == {"t/s1/leaf-1": 0.7}


@pytest.mark.parametrize("content", ["t/r1: 2", "t/r1: -1", "t/r1: good", "t/r1: true"])
def test_a_history_that_cannot_be_is_refused_in_words(content):
    """The leaf is named."""
    with pytest.raises(InputError, match="t/r1"):
        read([("c.yaml", config(content))])


def test_an_empty_config_map_is_no_history():
    """The installed ConfigMap is empty."""
    item = config("")
    del item["data"]
    assert read([("c.yaml", item)]).base.settings.history == {}


def test_gangs_without_the_annotations_do_not_look_at_history():
    """A rack in which gangs failed is as good as another for them."""
    moment = racks(2, 4)
    group = gang(pod_set(2, shape(gpu=8)), required="rack")
    assert plan(moment, group).domain == ("r1",)
