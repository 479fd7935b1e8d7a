"""The component of the live page: it reads and does nothing else, and is no replica of the webhook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from webhook.cli.main import parser
from webhook.kube.state.cluster_watch import EXTRAS, GANGS
from webhook.workloads import KINDS

Json = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "manifests"
COMPONENT = MANIFESTS / "components" / "ui"


def objects(*files: Path) -> list[Json]:
    """The objects in files."""
    return [body for file in files for body in yaml.safe_load_all(file.read_text())]


UI = objects(*(COMPONENT / name for name in ("rbac.yaml", "page.yaml")))


def of_kind(kind: str) -> Json:
    """The only object of a kind."""
    (body,) = (body for body in UI if body["kind"] == kind)
    return body


def rights(*bodies: Json) -> set[tuple[str, str, str]]:
    """Group, resource and verb of every rule."""
    return {
        (group, resource, verb)
        for body in bodies
        for rule in body.get("rules") or ()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_it_may_read_and_nothing_else() -> None:
    """Not a Secret, and nothing that the replicas do not read, but Events, which tell of their decisions, and
    what the replicas tell in their metrics."""
    own = rights(*UI)
    assert {verb for _, _, verb in own} <= {"get", "list", "watch"}
    assert not any(resource in ("secrets", "pods/log", "*") or "*" in group for group, resource, _ in own)
    replicas = rights(*objects(MANIFESTS / "30-rbac.yaml"))
    read = {(group, resource) for group, resource, verb in replicas if verb in ("get", "list", "watch")}
    assert {(group, resource) for group, resource, _ in own} - read == {("", "events"), ("", "pods/proxy")}
    (role,) = (body for body in UI if "pods/proxy" in str(body.get("rules")))
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "bayplan-system")


def test_config_maps_are_read_by_their_names_alone() -> None:
    """Those of tenants hold what they like."""
    rules = [rule for body in UI for rule in body.get("rules") or () if "configmaps" in rule["resources"]]
    assert rules
    assert all(rule["resourceNames"] for rule in rules)
    watched = {extra.name for extra in EXTRAS if extra.resource == "configmaps"}
    assert watched <= {name for rule in rules for name in rule["resourceNames"]}


def test_it_may_read_all_that_the_page_is_made_of() -> None:
    """Each kind that the replicas watch, or the page would be another cluster than theirs."""
    listed = {(group, resource) for group, resource, verb in rights(*UI) if verb == "watch"}
    kinds = {(row.group, row.resource) for row in KINDS.values()}
    assert kinds | {(extra.group, extra.resource) for extra in (*EXTRAS, *GANGS)} <= listed


def test_its_arguments_are_those_of_the_command() -> None:
    """In the cluster, for viewers with tokens, on a port of its own."""
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    args = parser("ui").parse_args([container["command"][1], *container["args"]])
    assert (args.in_cluster, args.port, args.host) == (True, 8080, "0.0.0.0")
    replicas = next(body for body in objects(MANIFESTS / "40-deployment.yaml"))
    ports = {port["containerPort"] for port in replicas["spec"]["template"]["spec"]["containers"][0]["ports"]}
    assert args.port not in ports
    assert pod["serviceAccountName"] == of_kind("ServiceAccount")["metadata"]["name"] == "bayplan-ui"


def test_its_pod_is_selected_by_no_object_of_the_webhook() -> None:
    """Neither its Service, nor its disruption budget, nor its NetworkPolicy, which lets calls in."""
    labels = of_kind("Deployment")["spec"]["template"]["metadata"]["labels"]
    others = objects(
        *(MANIFESTS / name for name in ("50-service.yaml", "55-pdb.yaml", "60-networkpolicy.yaml"))
    )
    for body in others:
        selector = body["spec"].get("selector") or body["spec"]["podSelector"]
        wanted = selector.get("matchLabels", selector)
        assert any(labels.get(key) != value for key, value in wanted.items()), body["kind"]


def test_nothing_reaches_it_over_the_network_until_it_is_allowed() -> None:
    """`kubectl port-forward` goes through the kubelet."""
    policy = of_kind("NetworkPolicy")["spec"]
    assert (policy["ingress"], "Ingress" in policy["policyTypes"]) == ([], True)
    assert policy["podSelector"]["matchLabels"] == of_kind("Service")["spec"]["selector"]


def test_it_runs_as_nobody_and_writes_no_file() -> None:
    """As the replicas do."""
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    context = pod["containers"][0]["securityContext"]
    assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
