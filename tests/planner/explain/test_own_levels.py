"""Refusals of gangs of which PodSets or slices have a required level of their own."""

import pytest

from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.planning.plan import plan
from tests.builders import cluster, gang, pod_set, shape

THREE_IN_EACH = cluster("r1: a b c\nr2: d e f")


def in_one_rack(count: int, name: str, gpu: int = 8) -> PodSet:
    """A PodSet that requires a rack."""
    return pod_set(count, shape(gpu=gpu), name=name, constraint=Constraint(required="rack"))


def test_a_pod_set_that_requires_the_level_of_its_gang_is_counted_pod_by_pod() -> None:
    """Its own level adds nothing. It counted as a whole that does not fit, and the master as the culprit."""
    group = gang(pod_set(1, shape(gpu=8), name="master"), in_one_rack(4, "worker"), required="rack")
    assert plan(THREE_IN_EACH, group).message.startswith(
        "5 pods (40 GPUs) required in one rack do not fit the empty cluster: the largest rack, r1, has room "
        "for 3 of 5 pods (24 GPUs). Would work: 2 pods of worker"
    )


def test_fewer_pods_of_one_pod_set_are_tried_if_each_requires_a_level() -> None:
    """Three of w have no rack beside the three of x, and two have. The search counts whole PodSets only."""
    group = gang(in_one_rack(3, "w"), in_one_rack(3, "x", gpu=7))
    message = plan(cluster("r1: a b c d\nr2: e f"), group).message
    assert message.startswith("6 pods (45 GPUs), each of w and x in one rack, do not fit the empty cluster")
    assert message.endswith("Would work: 2 pods of w, or no required level.")


SLICES = pod_set(8, shape(gpu=8), constraint=Constraint(slice_level="rack", slice_size=4))


@pytest.mark.parametrize(
    ("group", "subject"),
    [
        (gang(SLICES), "8 pods (64 GPUs), each slice of 4 in one rack, do not fit"),
        (
            gang(in_one_rack(4, "a"), in_one_rack(4, "b")),
            "8 pods (64 GPUs), each of a and b in one rack, do not fit",
        ),
        (
            gang(in_one_rack(3, "a"), pod_set(4, shape(gpu=8), name="b")),
            "7 pods (56 GPUs), a in one rack, do not fit",
        ),
    ],
    ids=["slices", "all pod sets", "one of them"],
)
def test_a_refusal_says_which_pods_must_be_in_one_domain(group: PodGroup, subject: str) -> None:
    """Without it, "room for 0 of 8 pods" in a cluster with six free nodes is a riddle."""
    assert plan(THREE_IN_EACH, group).message.startswith(subject)
