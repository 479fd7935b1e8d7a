"""What the API server asks Bayplan about is what the code takes for a workload with GPUs, of every kind."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.manifests.pods.pod import shape_of
from planner.model.errors import Where
from planner.model.resources import DEVICE_NAMES, MISSPELT_DEVICES
from tests.manifests import conditions, generate
from tests.webhook.workloads import objects as o
from webhook.cel import Declarations, Program, compile
from webhook.workloads import KINDS, asks_for_gpus, read, wants_plan
from webhook.workloads.key_table.misspelt_keys import misspelt_resources
from webhook.workloads.keys.topology_keys import KEYS, Key
from webhook.workloads.kinds import row_of
from webhook.workloads.templates import value_at

Json = dict[str, Any]
KIND_OF = {obj["kind"]: obj for obj in o.EVERY}
KIND_NAMES = tuple(KIND_OF)
CONTAINER = {"name": "main", "image": "trainer:1"}


@cache
def condition(kind: str) -> Program:
    """What stands in 70-webhooks.yaml for the family of a kind."""
    family = next(name for name, kinds in generate.FAMILIES.items() if kind in kinds)
    hooks = [hook for hook in generate.mutating()["webhooks"] if hook["name"] == f"{family}.bayplan.dev"]
    (expression,) = (
        row["expression"] for row in hooks[0]["matchConditions"] if row["name"] == "gpu-workloads"
    )
    return compile(expression, Declarations(variables={"object": None}))


def reaches(obj: Json) -> bool:
    """Whether the API server asks Bayplan about an object."""
    return bool(condition(obj["kind"]).evaluate({"object": obj}))


def asks(obj: Json) -> bool:
    """Whether the code finds GPUs, parts of them or device claims in some pod template of an object."""
    workload = read(obj)
    specs = [value_at(obj, part.spec_path) for part in (*workload.templates, *workload.inlined)]
    return any(bool(spec.get("resourceClaims")) or asks_for_gpus(shape_of(spec, Where())) for spec in specs)


def pods_of(value: Any) -> list[Json]:
    """Every pod spec in an object, found by its containers and by nothing that the code knows of kinds."""
    specs = [value] if isinstance(value, dict) and "containers" in value else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return specs + [spec for part in parts for spec in pods_of(part)]


def with_pods(kind: str, *specs: Json) -> Json:
    """An object of a kind whose pod specs are these, in turn."""
    obj = copy.deepcopy(KIND_OF[kind])
    for index, spec in enumerate(pods_of(obj)):
        spec.clear()
        spec.update(copy.deepcopy(specs[index % len(specs)]))
    return obj


NAMES = st.sampled_from(
    [
        *DEVICE_NAMES,
        "nvidia.com/mig-1g.10gb",
        "cpu",
        "memory",
        "rdma/ib",
        "nvidia.com/hostdev",
        "nvidia.com/pgpu",
        *MISSPELT_DEVICES,
    ]
)
AMOUNTS = st.sampled_from([0, 1, 8, "0", "2"])


@st.composite
def resources(draw: st.DrawFn) -> Json:
    """Limits, requests, or both, which agree."""
    amounts = draw(st.dictionaries(NAMES, AMOUNTS, max_size=2))
    parts = draw(st.sampled_from([("limits",), ("requests",), ("limits", "requests"), ()]))
    return {part: dict(amounts) for part in parts}


@st.composite
def containers(draw: st.DrawFn, min_size: int = 0) -> list[Json]:
    """Containers, some of which say nothing of resources; in `initContainers` some are sidecars."""
    optional = {"resources": resources(), "restartPolicy": st.just("Always")}
    return draw(
        st.lists(
            st.fixed_dictionaries({"name": st.just("c"), "image": st.just("i")}, optional=optional),
            min_size=min_size,
            max_size=2,
        )
    )


CLAIMS = st.lists(st.just({"name": "gpu", "resourceClaimTemplateName": "gpus"}), max_size=1)
PODS = st.fixed_dictionaries(
    {"containers": containers(1)},
    optional={
        "initContainers": containers(),
        "ephemeralContainers": containers(),
        "resources": resources(),
        "resourceClaims": CLAIMS,
    },
)


@given(st.sampled_from(KIND_NAMES), st.lists(PODS, min_size=1, max_size=3))
def test_the_api_server_asks_about_just_what_the_code_takes_for_gpus(kind: str, specs: list[Json]) -> None:
    """Whichever template, container, claim or pod as a whole asks: the match condition holds if and only if
    the code finds it, or tells of its spelling; what would be planned is never missed."""
    obj = with_pods(kind, *specs)
    assert reaches(obj) is (asks(obj) or any(misspelt_resources(spec, {}) for spec in pods_of(obj)))
    assert reaches(obj) or not wants_plan(read(obj))


WAYS: dict[str, Json] = {
    "an init container": {"initContainers": [{**CONTAINER, "resources": {"limits": {o.GPU: 8}}}]},
    "a sidecar": {
        "initContainers": [{**CONTAINER, "restartPolicy": "Always", "resources": {"limits": {o.GPU: 1}}}]
    },
    "an ephemeral container": {"ephemeralContainers": [{**CONTAINER, "resources": {"limits": {o.GPU: 1}}}]},
    "the pod as a whole": {"resources": {"limits": {o.GPU: 8}}},
    "a request without a limit": {"containers": [{**CONTAINER, "resources": {"requests": {o.GPU: 1}}}]},
    "a claim": {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]},
}


@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_asks_for_gpus_unseen(kind: str, way: str) -> None:
    """The webhook is asked about the object, and all but Grove's, which Grove plans, are planned."""
    obj = with_pods(kind, {"containers": [CONTAINER]} | WAYS[way])
    assert reaches(obj)
    assert wants_plan(read(obj)) or kind == "PodCliqueSet"


def test_an_amount_of_none_asks_for_nothing() -> None:
    """Charts write `nvidia.com/gpu: 0` for their CPU variant; a Deployment of that is left alone."""
    obj = with_pods("Deployment", {"containers": [{**CONTAINER, "resources": {"limits": {o.GPU: 0}}}]})
    assert not reaches(obj)
    assert not wants_plan(read(obj))


VALUES = {"slice-size": "2", "gpu-count": "8", "bandwidth": "200Gb", "part": "0.5"}
BESIDE = {
    "slice": {"kai.scheduler/segment-size": "2"},
    "slice-size": {"kai.scheduler/segment-topology-required-placement": "rack"},
    "slice-preferred": {"kai.scheduler/segment-size": "2"},
}
"""What else has to be there for a key to be understood."""


def annotated(kind: str, path: str, notes: Json) -> list[Json]:
    """An object without GPUs, its first and its last metadata at a path annotated, each in a copy."""
    copies = []
    for last in (False, True):
        obj = with_pods(kind, {"containers": [CONTAINER]})
        place: Any = obj
        for step in path.split("."):
            name = step.rstrip("[]{}")
            place = place.setdefault(name, {})
            if name != step:
                place = (list(place.values()) if isinstance(place, dict) else place)[-1 if last else 0]
        place["annotations"] = notes
        copies.append(obj)
    return copies


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_key_of_topology_reaches_the_webhook_wherever_it_counts(key: Key) -> None:
    """On the object, its templates and what stands between, of every kind that is planned for it."""
    value = "1024" if key.name == "gpu-memory" else VALUES.get(key.meaning, "rack")
    notes = {key.name: key.values[0] if key.values else value} | (
        {} if key.name.startswith("kueue") else BESIDE.get(key.meaning, {})
    )
    if key.name.startswith("kueue") and key.meaning.startswith("slice"):
        notes |= {
            "kueue.x-k8s.io/podset-slice-size": "2",
            "kueue.x-k8s.io/podset-slice-required-topology": "rack",
        }
    if key.meaning == "part":
        notes = {"gpu-fraction": "0.5", key.name: "2"} if key.name.endswith("devices") else notes
    counted = 0
    for kind in (name for name in KIND_NAMES if name != "PodCliqueSet"):
        row = row_of(KIND_OF[kind]["apiVersion"], kind)
        assert row is not None
        for path in ("metadata", *row.pods.metadata):
            for obj in annotated(kind, path, notes):
                counted += wants_plan(read(obj))
                assert reaches(obj) or not wants_plan(read(obj)), (kind, path)
    assert counted


def test_every_kind_says_where_its_pods_are() -> None:
    """A row whose layout finds templates has their places, and a family of webhooks; no other has."""
    for row in KINDS.values():
        families = [name for name, kinds in generate.FAMILIES.items() if row.name in kinds]
        assert (bool(row.pods.specs), len(families)) == (row.has_templates, int(row.has_templates)), row.name


def test_paths_that_differ_in_one_name_are_one_condition() -> None:
    """As long as nothing else differs; what stands alone stays as it is."""
    rows = generate.rows_of(("TFJob", "MPIJob", "Job"))
    text = conditions.asking(rows)
    assert text.count("['tfReplicaSpecs', 'mpiReplicaSpecs']") == 2
    assert "object.spec.template.spec" in text
