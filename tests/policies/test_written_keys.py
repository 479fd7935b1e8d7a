"""What policies write for a scheduler, it reads: by the table of what was found in its source."""

from __future__ import annotations

import re

import pytest

from planner.manifests.schedulers.scheduler_facts import FACTS, FACTS_OF
from planner.manifests.schedulers.systems import SYSTEMS
from planner.model.schedulers import KAI, KUEUE
from tests.policies.helpers import FOLDERS, POLICIES
from webhook.workloads.keys.topology_keys import KEYS

WRITTEN = re.compile(r'"((?:kai\.scheduler|kueue\.x-k8s\.io)/[a-z-]+|pod-group-name)": ?(?!\{)')
WRITTEN_IF = re.compile(r'\?"((?:kai\.scheduler|kueue\.x-k8s\.io)/[a-z-]+)":')


def written() -> set[str]:
    """The keys of KAI's and Kueue's that the expressions of shipped policies put into metadata."""
    keys: set[str] = set()
    for folder in FOLDERS:
        text = (POLICIES / folder / "policy.yaml").read_text()
        keys |= {*WRITTEN.findall(text), *WRITTEN_IF.findall(text)}
    return keys


def test_policies_write_keys_of_both_systems() -> None:
    """Or the next test would say nothing."""
    assert {"kai.scheduler/topology", "kai.scheduler/batch-min-member", "pod-group-name"} <= written()
    assert "kueue.x-k8s.io/podset-required-topology" in written()


@pytest.mark.parametrize("key", sorted(written()))
def test_a_key_that_a_policy_writes_is_read_by_its_scheduler(key: str) -> None:
    """A key that nobody reads changes nothing, and nobody says so."""
    system = KUEUE if key.startswith("kueue.x-k8s.io/") else KAI
    assert key in FACTS_OF[system].reads


def test_topology_keys_that_bayplan_reads_are_those_that_the_systems_read() -> None:
    """A user's key that its own scheduler would not heed is none of that system's."""
    for system, prefix in ((KAI, "kai.scheduler/"), (KUEUE, "kueue.x-k8s.io/")):
        own = {key.name for key in KEYS if key.name.startswith(prefix)}
        assert own <= FACTS_OF[system].reads.keys()


def test_each_row_says_where_it_was_read() -> None:
    """A version, and a file or document for each key; the system is one that a cluster can show."""
    shown = {system.name for system in SYSTEMS} | {"default-scheduler"}
    for row in FACTS:
        assert row.name in shown
        assert row.version
        assert row.leaves
        assert all(re.search(r"\.go|documents", place) for place in row.reads.values())
