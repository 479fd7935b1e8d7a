"""`nodeAffinity.require` and `prefer`: terms are ORed, the requirements inside one ANDed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.workloads.node_affinity import PREFERRED, REQUIRED, prefer, require

RACK_1 = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}
RACK_2 = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r2"]}]}
H100 = {"matchExpressions": [{"key": "product", "operator": "In", "values": ["H100"]}]}


def terms_of(affinity: dict[str, object]) -> list[dict[str, object]]:
    """The required terms of an affinity."""
    return affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]  # type: ignore[index,no-any-return]


def test_without_an_affinity_the_terms_stand_alone() -> None:
    """Null and an empty affinity are the same."""
    assert terms_of(require(None, [RACK_1])) == [RACK_1] == terms_of(require({}, [RACK_1]))


def test_each_existing_term_gets_ours() -> None:
    """The H100 requirement stays, and the rack is added."""
    before = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [H100]}}}
    expected = [{"matchExpressions": [*H100["matchExpressions"], *RACK_1["matchExpressions"]]}]
    assert terms_of(require(before, [RACK_1])) == expected
    assert terms_of(before) == [H100], "the input is not changed"


def test_two_domains_become_two_terms() -> None:
    """A gang over two racks may use either."""
    before = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [H100]}}}
    assert len(terms_of(require(before, [RACK_1, RACK_2]))) == 2


def test_a_term_that_would_contradict_itself_is_left_out() -> None:
    """Narrowing two racks to one leaves one term, not an impossible second."""
    affinity = require(None, [RACK_1, RACK_2])
    assert terms_of(require(affinity, [RACK_1])) == [RACK_1]


def test_other_affinities_stay_as_they_are() -> None:
    """Pod anti-affinity and preferences are not touched."""
    before = {"podAntiAffinity": {"x": 1}, "nodeAffinity": {PREFERRED: [{"weight": 1, "preference": H100}]}}
    after = require(before, [RACK_1])
    assert after["podAntiAffinity"] == {"x": 1}
    assert after["nodeAffinity"][PREFERRED] == before["nodeAffinity"][PREFERRED]  # type: ignore[index]


def test_nothing_to_demand_changes_nothing() -> None:
    """An empty list of terms is no constraint."""
    assert require({"podAffinity": {}}, []) == {"podAffinity": {}}


def test_a_preference_is_added_once() -> None:
    """A second pass finds it there."""
    once = prefer(None, [RACK_1], 100)
    assert prefer(once, [RACK_1], 100) == once
    assert once["nodeAffinity"][PREFERRED] == [{"weight": 100, "preference": RACK_1}]


_requirement = st.builds(
    lambda key, values: {"key": key, "operator": "In", "values": sorted(values)},
    st.sampled_from(["rack", "zone", "product"]),
    st.sets(st.sampled_from("abc"), min_size=1, max_size=2),
)
_term = st.builds(lambda rs: {"matchExpressions": rs}, st.lists(_requirement, min_size=1, max_size=2))
_terms = st.lists(_term, min_size=1, max_size=3)
_some_empty = st.lists(
    st.one_of(_term, st.sampled_from([{}, {"matchExpressions": []}])), min_size=1, max_size=3
)


def matches(terms: list[dict[str, object]], node: dict[str, str]) -> bool:
    """Whether a node meets one of the terms (In only); an empty term matches no node."""
    return any(
        all(node[r["key"]] in r["values"] for r in term["matchExpressions"])  # type: ignore[attr-defined]
        for term in terms
        if term.get("matchExpressions")
    )


@given(
    _some_empty,
    _terms,
    st.fixed_dictionaries({k: st.sampled_from("abc") for k in ("rack", "zone", "product")}),
)
@settings(max_examples=300)
def test_a_node_meets_the_merge_exactly_when_it_meets_both(
    existing: list[dict[str, object]], ours: list[dict[str, object]], node: dict[str, str]
) -> None:
    """The merge is a logical AND of two ORs, and merging again changes nothing."""
    merged = require({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": existing}}}, ours)
    assert matches(terms_of(merged), node) == (matches(existing, node) and matches(ours, node))
    assert require(merged, ours) == merged
