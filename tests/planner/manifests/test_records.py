"""Tests that each kind of which an object is one record, and each record of the cluster, have each other."""

from planner.cluster.facts import FACTS, RECORDS
from planner.manifests.records import RECORD_KINDS


def test_each_fact_with_records_is_read_from_exactly_one_kind():
    """A fact without a kind would stay empty, and a kind without a fact could not be kept."""
    read = [kind.fact for kind in RECORD_KINDS.values()]
    assert sorted(read) == sorted(RECORDS)


def test_each_record_is_a_fact():
    """A path that is misspelt in `RECORDS` would be compared as a single value."""
    assert set(RECORDS) <= set(FACTS)
