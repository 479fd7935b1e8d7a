"""Each domain gets the caps of its level that name it or have a default, whatever the other domains have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.plan_cache import PlanCache
from planner.cluster.trees.subtree import Subtree
from planner.search.domain_caps import DomainCap
from planner.search.eligibility_map import EligibilityMap, capped
from tests.builders import cluster

DRAWING = """
    r1: a1 a2 a3
    r2: b1 b2
    : c1 c2
"""
TREE = cluster(DRAWING).base.trees["topo"]
RACK, HOST = 0, 1


def caps_at(level: int, names: tuple[str, ...]) -> st.SearchStrategy[DomainCap]:
    """Caps of one level; these names are values of its label."""
    values = st.dictionaries(st.sampled_from(names), st.integers(0, 3), max_size=2)
    domains = st.sampled_from([branch for branch in TREE.levels[level] if branch.has_name])
    return st.builds(
        DomainCap,
        st.just(level),
        st.just((0,)),
        st.just((0,)),
        values,
        st.none() | st.integers(1, 4),
        st.dictionaries(domains, st.integers(0, 3), max_size=1),
    )


@given(st.lists(caps_at(RACK, ("r1", "r2")) | caps_at(HOST, ("a1", "b1", "c1")), max_size=4), st.booleans())
def test_the_caps_of_a_domain_are_those_that_name_it_and_the_defaults(caps, first) -> None:
    free = EligibilityMap(("",))
    taken = EligibilityMap(("taken",))
    racks = tuple(
        EligibilityMap((), 0, (taken, *(free,) * (len(branch.children) - 1))) if first else free
        for branch in TREE.root.children
    )
    match = capped(PlanCache(), EligibilityMap((), 0, racks), TREE.root, caps)

    def check(match: EligibilityMap, branch: Subtree, above: set) -> None:
        expected = above | {own for cap in caps if cap.level == branch.level and (own := cap.of(branch))}
        assert set(match.caps) == expected, branch.path
        for child_match, child in zip(match.of_children(len(branch.children)), branch.children, strict=True):
            check(child_match, child, expected)

    check(match, TREE.root, set())
