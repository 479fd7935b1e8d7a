"""The named functions of the policies over templates, levels and the places where KAI reads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policies.helpers import cluster
from tests.webhook.workloads.objects import EVERY, JOB, JOB_SET, LWS, POD, RAY_JOB, Json, annotated, changed
from webhook.policy.functions.workloads import kai_places, level, places
from webhook.variables.cluster import cluster_variable

RACK = {"kai.scheduler/topology-required-placement": "example.com/rack"}
LEVELS = ["topology.kubernetes.io/zone", "example.com/rack", "kubernetes.io/hostname"]
TOPOLOGIES = {"topologies": {"halls": LEVELS}, "aliases": {"halls": {"cage": "example.com/rack"}}}


@pytest.mark.parametrize("obj", EVERY, ids=lambda workload: str(workload["kind"]))
def test_a_place_leads_to_its_template(obj: Json) -> None:
    """Its path, followed in the object, ends at the metadata and spec that it shows."""
    for place in places(obj):
        template: Any = obj
        for step in place["path"].split("/")[1:]:
            template = template[int(step)] if isinstance(template, list) else template[step]
        assert (template["spec"], template.get("metadata") or {}) == (place["spec"], place["metadata"])


def test_a_place_tells_the_wish_of_its_gang() -> None:
    """Wherever the key stands, the template's pods are told what they ask for, and how many they are."""
    (place,) = places(annotated(JOB, RACK))
    assert (place["required"], place["preferred"], place["count"], place["gpus"]) == (
        "example.com/rack",
        "",
        4,
        2,
    )


def test_kai_reads_on_the_object_on_a_jobs_template_and_on_rays_groups() -> None:
    """One place for most kinds, each job's as well for a JobSet, only the groups for Ray."""
    assert [place["path"] for place in kai_places(LWS)] == ["/metadata"]
    assert [place["path"] for place in kai_places(JOB_SET)] == [
        "/metadata",
        "/spec/replicatedJobs/0/template/metadata",
        "/spec/replicatedJobs/1/template/metadata",
    ]
    assert kai_places(RAY_JOB)[0]["path"].endswith("headGroupSpec/template/metadata")


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("rack", "example.com/rack"),
        ("zone", LEVELS[0]),
        ("node", LEVELS[2]),
        (LEVELS[1], LEVELS[1]),
        ("cage", LEVELS[1]),
    ],
)
def test_a_short_name_means_one_label_key(word: str, key: str) -> None:
    """In the topology at hand."""
    assert level(TOPOLOGIES, "halls", word) == key


@pytest.mark.parametrize(
    ("topology", "word"), [("other", "rack"), ("", "rack"), ("halls", "row"), ("halls", ""), ("halls", 3)]
)
def test_a_word_that_means_nothing_is_no_level(topology: str, word: object) -> None:
    """Nothing is guessed, and nothing fails."""
    assert level(TOPOLOGIES, topology, word) == ""


@pytest.mark.parametrize("bad", [None, "text", []])
def test_places_of_what_is_no_object_are_an_error_in_words(bad: object) -> None:
    """A short one."""
    with pytest.raises(ValueError, match="no mapping"):
        places(bad)


def test_a_pod_on_its_own_is_its_own_place() -> None:
    """Its path is the root's, which is empty."""
    assert [place["path"] for place in places(changed(POD, ("metadata", "labels"), {"a": "b"}))] == [""]


def test_policies_know_the_domains_and_the_kinds_of_gpu_nodes() -> None:
    """SuperPOD: one block of four racks, one kind of node, 32 of them."""
    facts = cluster_variable(cluster("superpod-32"))
    domains, kinds = facts["domains"], facts["gpuNodes"]
    assert isinstance(domains, list)
    assert isinstance(kinds, list)
    assert [domain["name"] for domain in domains] == ["su-1", "rack-1", "rack-2", "rack-3", "rack-4"]
    (kind,) = kinds
    assert (kind["product"], kind["memory"], kind["count"], kind["nodes"]) == (
        "NVIDIA-H100-80GB-HBM3",
        81559,
        8,
        32,
    )
