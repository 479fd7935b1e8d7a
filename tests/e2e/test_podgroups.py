"""PodGroups on a real API server: Bayplan makes no plan for them, but policies mutate them and warn about
them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.hook import bayplan
from tests.e2e.kubectl import Output
from tests.e2e.stage import Site

pytestmark = pytest.mark.usefixtures("clean")


def group(api_version: str, spec: Json, **annotations: str) -> Json:
    """A PodGroup of that name in the namespace of the examples."""
    metadata = {"name": "serve", "namespace": "inference", "annotations": annotations}
    return {"apiVersion": api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def apply(site: Site, body: Json) -> Output:
    """A server-side dry run: the object that would be stored, and the output of kubectl."""
    text = yaml.safe_dump(body)
    return site.cluster.kubectl("apply", "--dry-run=server", "-o", "yaml", "-f", "-", text=text)


def test_the_older_recipe_is_refused_by_kais_own_api_and_answered_by_the_preview(
    site: Site, tmp_path: Path
) -> None:
    """KAI serves no v2 of it, and v2alpha2 has no such field; `bayplan mutate` says what works there."""
    scope = {"minMember": 2, "topologyPolicy": {"scope": "rack"}}
    output = apply(site, group("scheduling.run.ai/v2", scope))
    assert (output.status, 'no matches for kind "PodGroup"' in output.err) == (1, True), output.err
    output = apply(site, group("scheduling.run.ai/v2alpha2", scope))
    assert (output.status, 'unknown field "spec.topologyPolicy"' in output.err) == (1, True), output.err
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(group("scheduling.run.ai/v2", scope)))
    report = bayplan("report", "-f", str(recipe), "-c", str(site.hook.picture), statuses=(0, 1))
    text = " ".join(report.split())
    assert "the scope rack is of an older recipe" in text
    assert "requiredTopologyLevel: cloud.provider.com/topology-rack" in text


def test_a_topology_of_a_group_that_is_named_alone_gets_a_level(site: Site) -> None:
    """KAI would never schedule such a group; the API server takes what the policy writes."""
    constraint = {"topology": "superpod", "requiredTopologyLevel": "cloud.provider.com/topology-rack"}
    parts = [{"name": "decode", "minMember": 1, "topologyConstraint": {"topology": "superpod"}}]
    output = apply(site, group("scheduling.run.ai/v2alpha2", {"subGroups": parts}))
    assert output.status == 0, output.err
    assert output.object["spec"]["subGroups"][0]["topologyConstraint"] == {
        "topology": "superpod",
        "preferredTopologyLevel": "kubernetes.io/hostname",
    }
    output = apply(
        site, group("scheduling.run.ai/v2alpha2", {"minMember": 2, "topologyConstraint": constraint})
    )
    assert output.object["spec"]["topologyConstraint"] == constraint


def test_a_group_that_says_nothing_of_topology_does_not_reach_the_webhook(site: Site) -> None:
    """Its match condition lets it through."""
    before = len(site.hook.decisions())
    assert apply(site, group("scheduling.run.ai/v2alpha2", {"minMember": 2})).status == 0
    assert len(site.hook.decisions()) == before


@pytest.fixture
def native(site: Site) -> str:
    """The version in which the API server has the PodGroups of Kubernetes itself."""
    served = site.cluster.kubectl("api-resources", "--api-group=scheduling.k8s.io", "--no-headers").out
    rows = (line.split() for line in served.splitlines())
    version = next((row[-3] for row in rows if row[0] == "podgroups"), "")
    return version or pytest.skip("this version of Kubernetes has none")


def test_a_native_group_gets_its_topology_key_from_a_wish_in_kais_words(site: Site, native: str) -> None:
    """The API server takes the field that the policy writes."""
    wish = {"kai.scheduler/topology-required-placement": "rack"}
    output = apply(site, group(native, {"schedulingPolicy": {"gang": {"minCount": 2}}}, **wish))
    assert output.status == 0, output.err
    assert output.object["spec"]["schedulingConstraints"] == {
        "topology": [{"key": "cloud.provider.com/topology-rack"}]
    }


def test_a_preferred_level_of_a_native_group_gets_a_warning(site: Site, native: str) -> None:
    """Kubernetes' own groups know required levels only."""
    wish = {"kai.scheduler/topology-preferred-placement": "cloud.provider.com/topology-rack"}
    output = apply(site, group(native, {"schedulingPolicy": {"gang": {"minCount": 2}}}, **wish))
    assert any("a PodGroup knows required levels only" in warning for warning in output.warnings), output
