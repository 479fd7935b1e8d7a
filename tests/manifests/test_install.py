"""The install manifests fit together: names, ports, selectors, flags, rules and match conditions."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.authority import service_names
from planner.manifests.reservation import reservation_manifest
from planner.manifests.topologies.objects import topology_from
from planner.model.errors import Where
from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation, reservation_id
from planner.model.topology import HOSTNAME
from tests.manifests import chart_readme, generate
from tests.manifests.examples import EXAMPLES
from tests.webhook.workloads import objects as o
from webhook.admission.configuration.settings import MODES, Settings
from webhook.admission.modes import mode_in_force
from webhook.cel import Declarations, compile
from webhook.cli.main import parser
from webhook.kube.state.cluster_watch import EXTRAS
from webhook.server.listening import STOP_SECONDS
from webhook.workloads import KINDS
from webhook.workloads.left_alone import NAMESPACES
from webhook.workloads.options import MODE

CRD = "CustomResourceDefinition"
MANIFESTS = EXAMPLES.parent
WEBHOOKS = [
    hook for document in (generate.mutating(), generate.validating()) for hook in document["webhooks"]
]
CONDITIONED = list(generate.mutating()["webhooks"])


def listed() -> list[str]:
    return list(yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["resources"])


def every() -> list[Any]:
    """Every object."""
    texts = [(MANIFESTS / name).read_text() for name in listed()]
    return [document for text in texts for document in yaml.load_all(text, yaml.CSafeLoader)]


def by_kind(objects: list[Any]) -> dict[str, Any]:
    """The first of each kind; custom resource definitions by the kind that they define."""
    return {
        manifest["spec"]["names"]["kind"] if manifest["kind"] == CRD else manifest["kind"]: manifest
        for manifest in reversed(objects)
    }


EVERY = every()
OBJECTS = by_kind(EVERY)
DEPLOYMENT = OBJECTS["Deployment"]
POD = DEPLOYMENT["spec"]["template"]
CONTAINER = POD["spec"]["containers"][0]


def test_kustomize_builds_every_file() -> None:
    """The kustomization lists every numbered file, and kubectl, where it is there, renders all objects."""
    assert listed() == sorted(path.name for path in MANIFESTS.glob("[0-9]*.yaml"))
    kubectl = shutil.which("kubectl")
    if kubectl:
        done = subprocess.run(
            [kubectl, "kustomize", str(MANIFESTS)], capture_output=True, text=True, check=True
        )
        assert len(list(yaml.safe_load_all(done.stdout))) == len(EVERY)


def test_the_webhooks_are_what_the_table_of_kinds_gives() -> None:
    """A new row in the table is a new rule, or this fails until the files are written again."""
    assert generate.FILE.read_text() == generate.text()
    assert generate.ENFORCED.read_text() == generate.enforced_text()


def test_rules_cover_every_kind_with_pods() -> None:
    """For each row that has pods, both configurations call Bayplan; on deletion as well."""
    with_pods = {
        (row.group, row.resource) for row in KINDS.values() if row.name not in ("PodGroup", "TrainJob")
    }
    for configuration in (generate.mutating(), generate.validating()):
        rules = [rule for hook in configuration["webhooks"] for rule in hook["rules"]]
        created = {
            (rule["apiGroups"][0], resource)
            for rule in rules
            if "CREATE" in rule["operations"]
            for resource in rule["resources"]
        }
        groups = {(group, "podgroups") for group in generate.GROUPS}
        looked_at = {("", "namespaces")} if configuration["kind"].startswith("Validating") else set()
        assert created == with_pods | groups | looked_at
    ends = [rule for hook in generate.validating()["webhooks"][-2:] for rule in hook["rules"]]
    assert all(rule["operations"] == ["DELETE"] for rule in ends)
    gone = {(rule["apiGroups"][0], name) for rule in ends for name in rule["resources"]}
    assert gone == with_pods | {(row.group, row.resource) for row in generate.pod_groups()}


@pytest.mark.parametrize(
    "hook", WEBHOOKS, ids=lambda hook: hook["clientConfig"]["service"]["path"] + hook["name"]
)
def test_a_webhook_cannot_lock_the_cluster(hook: Any) -> None:
    """Short, idempotent on dry run, away from kube-system and from Bayplan's own namespace."""
    expression, _ = hook["namespaceSelector"]["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
    assert {"kube-system", OBJECTS["Namespace"]["metadata"]["name"]} <= set(expression["values"])
    deletes = any("DELETE" in rule["operations"] for rule in hook["rules"])
    assert hook["timeoutSeconds"] == (2 if deletes and hook["name"] != "topologies.bayplan.dev" else 5)
    assert hook["sideEffects"] == "NoneOnDryRun"
    names = ("members.bayplan.dev", "podgroups.bayplan.dev", "namespaces.bayplan.dev")
    without_gpus = hook["name"] in names
    observed = hook["name"].endswith(".observed.bayplan.dev")
    assert hook["failurePolicy"] == ("Ignore" if without_gpus or deletes or observed else "Fail")


def test_of_namespaces_only_a_label_that_is_no_mode_is_asked_about() -> None:
    """A cluster makes and changes namespaces all day; no call is made for them."""
    (hook,) = (hook for hook in WEBHOOKS if hook["name"] == "namespaces.bayplan.dev")
    for mode in MODES:
        assert not holds(hook, {"metadata": {"name": "research", "labels": {MODE: mode}}})
    for labels in ({}, {"labels": {}}, {"labels": {"team": "ml"}}):
        assert not holds(hook, {"metadata": {"name": "research", **labels}})
    assert holds(hook, {"metadata": {"name": "research", "labels": {MODE: "enforced"}}})


def chosen(hook: Any, mode: str | None) -> bool:
    """Whether the namespaceSelector of a webhook takes a namespace with this label, None for none."""
    _, row = hook["namespaceSelector"]["matchExpressions"]
    assert row["key"] == MODE
    return (mode in row["values"]) is (row["operator"] == "In")


@pytest.mark.parametrize("by_default", [False, True], ids=["audit", "enforce"])
@pytest.mark.parametrize("mode", [None, *MODES, "enforced"])
def test_a_workload_of_a_namespace_that_is_not_enforced_is_never_blocked(
    mode: str | None, by_default: bool
) -> None:
    """Of each kind just one webhook is asked in each phase. It fails closed only where the mode is enforce,
    by the label or as the default of the installation; in `off` none is asked. A label that is no mode counts
    as none."""
    settings = Settings("enforce" if by_default else "audit")
    force = mode_in_force({"metadata": {"labels": {MODE: mode} if mode else {}}}, settings)
    for configuration in (generate.mutating(), generate.validating()):
        hooks = {hook["name"]: hook for hook in configuration["webhooks"]}
        if by_default:
            patch = generate.enforcing(configuration)
            assert patch["webhooks"]
            hooks |= {row["name"]: hooks[row["name"]] | row for row in patch["webhooks"]}
        asked = [hook for hook in hooks.values() if chosen(hook, mode)]
        for family in generate.FAMILIES:
            policies = [hook["failurePolicy"] for hook in asked if hook["name"].startswith(f"{family}.")]
            assert policies == ([] if mode == "off" else ["Fail" if force.enforces else "Ignore"])
        assert (asked == []) is (mode == "off")


def test_both_halves_of_a_webhook_differ_in_namespaces_and_failure_alone() -> None:
    """What is asked about is the same, whether it is enforced or observed."""
    for configuration in (generate.mutating(), generate.validating()):
        hooks = {hook["name"]: hook for hook in configuration["webhooks"]}
        for family in generate.FAMILIES:
            halves = [hooks[f"{family}.bayplan.dev"], hooks[f"{family}.observed.bayplan.dev"]]
            apart = {"name", "failurePolicy", "namespaceSelector"}
            first, second = (
                {key: value for key, value in half.items() if key not in apart} for half in halves
            )
            assert first == second


def kustomized(folder: Path | str) -> dict[str, Any]:
    """What kubectl makes of a kustomization, by kind; nothing without kubectl."""
    kubectl = shutil.which("kubectl")
    if not kubectl:
        return {}
    done = subprocess.run([kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=True)
    return by_kind(list(yaml.safe_load_all(done.stdout)))


def arguments(objects: dict[str, Any]) -> Any:
    """What `bayplan serve` is told by a Deployment."""
    container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    return parser("serve").parse_args([container["command"][1], *container["args"]])


def test_what_ships_audits_and_the_overlay_enforces() -> None:
    """The mode of namespaces without the label, told to the replicas and to the API server alike."""
    assert arguments(OBJECTS).mode == "audit"
    overlay = kustomized(MANIFESTS.parent / "overlays" / "enforce")
    if overlay:
        assert arguments(overlay).mode == "enforce"
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            before, after = OBJECTS[kind]["webhooks"], overlay[kind]["webhooks"]
            patch = generate.enforcing(OBJECTS[kind])["webhooks"]
            selectors = {row["name"]: row["namespaceSelector"] for row in patch}
            assert [hook["name"] for hook in after] == [hook["name"] for hook in before]
            for hook, former in zip(after, before, strict=True):
                assert hook == former | {
                    "namespaceSelector": selectors.get(hook["name"], former["namespaceSelector"])
                }


def test_the_enforce_component_stands_beside_cert_manager(tmp_path: Path) -> None:
    """cert-manager's component writes the arguments anew, with the mode; `enforce` behind it counts."""
    relative = os.path.relpath(MANIFESTS, tmp_path)
    for parts, mode in (["cert-manager"], "audit"), (["cert-manager", "enforce"], "enforce"):
        components = [f"{relative}/components/{part}" for part in parts]
        (tmp_path / "kustomization.yaml").write_text(
            yaml.safe_dump({"resources": [relative], "components": components})
        )
        objects = kustomized(tmp_path)
        assert not objects or arguments(objects).mode == mode


def test_the_webhooks_call_the_service_by_a_name_in_its_certificate() -> None:
    """Service, namespace and port are those of the Service; the certificate made for it has the name."""
    service = OBJECTS["Service"]["metadata"]
    for hook in WEBHOOKS:
        called = hook["clientConfig"]["service"]
        assert (called["name"], called["namespace"]) == (service["name"], service["namespace"])
        assert called["port"] == OBJECTS["Service"]["spec"]["ports"][0]["port"]
    assert (
        f"{service['name']}.{service['namespace']}.svc"
        in service_names(service["name"], service["namespace"]).dns
    )


def test_the_service_reaches_the_container() -> None:
    """Selector, pod labels, target port and the port that is served agree."""
    service = OBJECTS["Service"]["spec"]
    assert service["selector"].items() <= POD["metadata"]["labels"].items()
    assert DEPLOYMENT["spec"]["selector"]["matchLabels"].items() <= POD["metadata"]["labels"].items()
    ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
    args = parser("serve").parse_args([CONTAINER["command"][1], *CONTAINER["args"]])
    assert ports == {"https": args.port, "probes": args.probe_port}
    assert service["ports"][0]["targetPort"] == "https"
    probes = [CONTAINER[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
    assert {(probe["port"], probe.get("scheme")) for probe in probes} == {("probes", None)}
    let_in = [
        rule["port"] for entry in OBJECTS["NetworkPolicy"]["spec"]["ingress"] for rule in entry["ports"]
    ]
    assert sorted(let_in) == sorted(ports.values())
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        selector = OBJECTS[kind]["spec"].get("selector") or OBJECTS[kind]["spec"]["podSelector"]
        assert selector["matchLabels"].items() <= POD["metadata"]["labels"].items()


def test_the_container_is_started_with_flags_that_exist() -> None:
    """`bayplan serve` takes the Deployment's arguments, and they name objects that are there."""
    args = parser("serve").parse_args([CONTAINER["command"][1], *CONTAINER["args"]])
    assert args.policies == ["/policies"]
    assert (args.in_cluster, args.namespace) == (True, OBJECTS["Namespace"]["metadata"]["name"])
    assert args.service == OBJECTS["Service"]["metadata"]["name"]
    assert args.certificate_secret == OBJECTS["Secret"]["metadata"]["name"]
    configurations = {
        manifest["metadata"]["name"]
        for manifest in EVERY
        if manifest["kind"].endswith("WebhookConfiguration")
    }
    assert set(args.webhook_configurations) == configurations
    volumes = {volume["name"] for volume in POD["spec"]["volumes"]}
    assert {mount["name"] for mount in CONTAINER["volumeMounts"]} == volumes


def test_a_stopping_replica_has_time_to_finish() -> None:
    """It serves on while callers learn of it, and then finishes, all before the kubelet kills it."""
    args = parser("serve").parse_args([CONTAINER["command"][1], *CONTAINER["args"]])
    assert args.drain > 0
    assert args.drain + STOP_SECONDS < POD["spec"]["terminationGracePeriodSeconds"]


def test_there_is_never_a_replica_less_than_there_should_be() -> None:
    """An upgrade starts the new before it stops the old; a drain leaves two."""
    spec = DEPLOYMENT["spec"]
    assert (spec["replicas"], spec["strategy"]["rollingUpdate"]["maxUnavailable"]) == (3, 0)
    assert OBJECTS["PodDisruptionBudget"]["spec"]["minAvailable"] < spec["replicas"]


def test_applying_again_wipes_no_certificate() -> None:
    """Neither the Secret's content nor a caBundle stands in the manifests: what replicas wrote stays."""
    assert not {"data", "stringData"} & OBJECTS["Secret"].keys()
    assert not any("caBundle" in hook["clientConfig"] for hook in WEBHOOKS)


def test_the_pods_are_restricted() -> None:
    """What PodSecurity `restricted` demands, and a read-only root besides."""
    assert OBJECTS["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    context = POD["spec"]["securityContext"]
    assert (context["runAsNonRoot"], context["seccompProfile"]["type"]) == (True, "RuntimeDefault")
    for container in POD["spec"]["containers"]:
        own = container["securityContext"]
        assert not own["allowPrivilegeEscalation"]
        assert own["readOnlyRootFilesystem"]
        assert own["capabilities"] == {"drop": ["ALL"]}


def rules(name: str) -> list[Any]:
    """The rules of a Role and a ClusterRole of this name, the namespaced ones first."""
    roles = [
        role for role in EVERY if role["kind"] in ("Role", "ClusterRole") and role["metadata"]["name"] == name
    ]
    return [rule for role in sorted(roles, key=lambda role: role["kind"] != "Role") for rule in role["rules"]]


def test_what_is_secret_or_ours_is_named() -> None:
    """The Secret and the webhook configurations may be read and patched by their names alone."""
    for rule in rules("bayplan-certificates"):
        assert (rule["resourceNames"] != [], rule["verbs"]) == (True, ["get", "patch"])
    open_to_all = [resource for rule in rules("bayplan") for resource in rule["resources"]]
    assert not {"secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"} & set(
        open_to_all
    )


def test_no_right_is_for_everything() -> None:
    """No wildcard, and nothing but our own kinds may be deleted."""
    for rule in rules("bayplan") + rules("bayplan-certificates"):
        assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
        assert "delete" not in rule["verbs"] or rule["apiGroups"] == ["bayplan.dev"]


def test_every_kind_of_workload_may_be_watched() -> None:
    """For each row of the table of kinds the controller may list and watch it; so for each extra kind."""
    watched = {
        (group, resource)
        for rule in rules("bayplan")
        if {"list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    kinds = {(row.group, row.resource) for row in KINDS.values()}
    assert kinds | {(extra.group, extra.resource) for extra in EXTRAS} <= watched


def test_cert_manager_takes_the_place_of_our_own_certificates(tmp_path: Path) -> None:
    """With the component there is no Secret of ours, no right to one, and the Deployment serves its files."""
    kubectl = shutil.which("kubectl")
    if not kubectl:
        return
    relative = os.path.relpath(MANIFESTS, tmp_path)
    (tmp_path / "kustomization.yaml").write_text(
        f"resources: [{relative}]\ncomponents: [{relative}/components/cert-manager]\n"
    )
    done = subprocess.run([kubectl, "kustomize", str(tmp_path)], capture_output=True, text=True, check=True)
    manifests = list(yaml.safe_load_all(done.stdout))
    assert "bayplan-certificates" not in {manifest["metadata"]["name"] for manifest in manifests}
    container = by_kind(manifests)["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    args = parser("serve").parse_args([container["command"][1], *container["args"]])
    assert args.certificate_secret is None
    assert str(args.tls_cert.parent) in {mount["mountPath"] for mount in container["volumeMounts"]}
    certificate = next(
        manifest
        for manifest in manifests
        if manifest["kind"] == "Certificate" and "dnsNames" in manifest["spec"]
    )
    assert certificate["spec"]["secretName"] in {
        volume.get("secret", {}).get("secretName")
        for volume in by_kind(manifests)["Deployment"]["spec"]["template"]["spec"]["volumes"]
    }
    assert tuple(certificate["spec"]["dnsNames"]) == service_names("bayplan", "bayplan-system").dns
    for manifest in manifests:
        if manifest["kind"].endswith("WebhookConfiguration"):
            source = manifest["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
            assert source == f"bayplan-system/{certificate['metadata']['name']}"


def test_the_fence_by_taint_takes_one_right_and_one_flag(tmp_path: Path) -> None:
    """Beside cert-manager too; without the component nobody may patch a node."""
    kubectl = shutil.which("kubectl")
    if not kubectl:
        return
    relative = os.path.relpath(MANIFESTS, tmp_path)
    parts = f"{relative}/components/cert-manager, {relative}/components/taint-fence"
    (tmp_path / "kustomization.yaml").write_text(f"resources: [{relative}]\ncomponents: [{parts}]\n")
    done = subprocess.run([kubectl, "kustomize", str(tmp_path)], capture_output=True, text=True, check=True)
    manifests = list(yaml.safe_load_all(done.stdout))
    container = by_kind(manifests)["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    args = parser("serve").parse_args([container["command"][1], *container["args"]])
    assert args.fence == "taint"
    assert parser("serve").parse_args([container["command"][1], *CONTAINER["args"]]).fence == "affinity"
    (right,) = (
        manifest["rules"]
        for manifest in manifests
        if manifest["metadata"]["name"] == "bayplan-fence" and "rules" in manifest
    )
    assert right == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}]


def faults(schema: Any, value: Any, path: str = "") -> list[str]:
    """Where a value is not what a structural schema says: wrong type, missing or unknown field."""
    if value is None:
        return [] if schema.get("nullable") else [f"{path} is null"]
    if schema.get("x-kubernetes-int-or-string"):
        return [] if isinstance(value, (int, str)) else [path]
    types = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
    if not isinstance(value, types[schema["type"]]) or value not in schema.get("enum", [value]):
        return [f"{path} is {value!r}"]
    if isinstance(value, list):
        return [fault for element in value for fault in faults(schema["items"], element, f"{path}[]")]
    if not isinstance(value, dict):
        return []
    properties, rest = schema.get("properties", {}), schema.get("additionalProperties")
    problems = [f"{path}.{name} is missing" for name in schema.get("required", []) if name not in value]
    problems += [f"{path}.{name} is unknown" for name in value if name not in properties and not rest]
    return problems + [
        fault
        for name, content in value.items()
        if name in properties or rest
        for fault in faults(properties.get(name, rest), content, f"{path}.{name}")
    ]


def schema_of(kind: str) -> Any:
    schema = OBJECTS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    metadata = {"type": "object", "properties": {"name": {"type": "string"}}}
    return {**schema, "properties": {**schema["properties"], **head, "metadata": metadata}}


def test_a_reservation_as_written_fits_its_definition() -> None:
    """What Bayplan writes as a Reservation the API server would store without dropping a field.

    Hence no status subresource: with one, the status of a new object would be dropped.
    """
    assert "subresources" not in OBJECTS["Reservation"]["spec"]["versions"][0]
    held = Reservation(
        id=reservation_id("team/Job/demo"), gang="team/Job/demo", topology="superpod", level=HOSTNAME,
        domain=("su-1", "rack-1", "dgx-05"), mode="domain", domains=(("su-1", "rack-1", "dgx-05"),),
        nodes=frozenset({"dgx-05"}), assignments=(Assignment("main", "dgx-05", 4),),
        requests=(("main", {"cpu": 16000, o.GPU: 2}),), fingerprint="f", created=1.5, expires=61.5,
    )  # fmt: skip
    for reservation in (held, replace(held, expires=None)):
        assert faults(schema_of("Reservation"), reservation_manifest(reservation)) == []


def test_a_topology_as_kai_writes_it_fits_ours() -> None:
    """Levels are spelled alike, and the schema knows each field that the reader knows."""
    ours = {"levels": [{"nodeLabel": "zone", "alias": "z"}], "nodeSelector": {"pool": "a"},
            "reservableLevel": "zone", "links": [{"from": "a", "to": "b", "gbps": 400}]}  # fmt: skip
    document = {
        "apiVersion": "bayplan.dev/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": ours,
    }
    assert faults(schema_of("Topology"), document) == []
    assert topology_from(document, Where()).reservable == "zone"


def holds(hook: Any, obj: Any) -> bool:
    """Whether a webhook's match conditions let an object through."""
    declared = Declarations(variables={"object": None, "oldObject": None, "request": None})
    programs = [compile(condition["expression"], declared) for condition in hook["matchConditions"]]
    return all(program.evaluate({"object": obj}) for program in programs)


def hook_of(obj: Any) -> Any:
    """The webhook whose family an object's kind is in."""
    return next(
        hook for hook in CONDITIONED if obj["kind"] in generate.FAMILIES[hook["name"].partition(".")[0]]
    )


@pytest.mark.parametrize("obj", o.EVERY, ids=lambda obj: obj["kind"])
def test_gpu_workloads_reach_the_webhook(obj: Any) -> None:
    """Of every kind, one whose pods ask for GPUs is let through."""
    assert holds(hook_of(obj), obj)


def without_gpus(value: Any) -> Any:
    """A copy in which no container asks for anything."""
    if isinstance(value, dict):
        return {key: {} if key == "limits" else without_gpus(part) for key, part in value.items()}
    return [without_gpus(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("obj", o.EVERY, ids=lambda obj: obj["kind"])
def test_other_workloads_do_not(obj: Any) -> None:
    """Without GPUs and keys nothing is asked of Bayplan; with a key on the object it is."""
    plain = without_gpus(obj)
    assert not holds(hook_of(obj), plain)
    assert holds(hook_of(obj), o.annotated(plain, {"kai.scheduler/topology": "fabric"}))


OF_A_JOB = {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "1"}]}


@pytest.mark.parametrize(
    ("metadata", "spec", "reaches"),
    [
        ({}, {"minMember": 2}, False),
        ({}, None, False),
        ({}, {"topologyPolicy": {"scope": "rack"}}, True),
        ({}, {"schedulingConstraints": {"topology": [{"key": "rack"}]}}, True),
        ({"annotations": {"kai.scheduler/topology-required-placement": "rack"}}, {}, True),
        ({}, {"minMember": 2, "topologyConstraint": {}}, False),
        ({}, {"topologyConstraint": {"topology": "racks", "requiredTopologyLevel": "rack"}}, True),
        ({}, {"topologyConstraint": {"preferredTopologyLevel": "rack"}}, True),
        ({}, {"topologyConstraint": {}, "subGroups": [{"name": "decode", "topologyConstraint": {}}]}, False),
        ({}, {"subGroups": [{"name": "decode", "topologyConstraint": {"topology": "racks"}}]}, True),
        (OF_A_JOB, {"topologyConstraint": {"topology": "racks", "requiredTopologyLevel": "rack"}}, False),
        (OF_A_JOB | {"annotations": {"kai.scheduler/topology": "racks"}}, {"topologyConstraint": {}}, False),
    ],
)
def test_pod_groups_that_speak_of_topology_reach_the_webhook(metadata: Any, spec: Any, reaches: bool) -> None:
    """Others are let through, as are those that KAI makes, with an owner, for a workload that was
    asked about itself: it stores an empty constraint in each and copies the owner's annotations."""
    group = {"apiVersion": "scheduling.run.ai/v2alpha2", "metadata": metadata}
    group |= {} if spec is None else {"spec": spec}
    hooks = [hook for hook in WEBHOOKS if hook["name"] == "podgroups.bayplan.dev"]
    assert [holds(hook, group) for hook in hooks] == [reaches, reaches]


def test_the_pods_of_a_daemon_set_are_not_asked_about() -> None:
    """They have their node already, and start while every webhook is down; a Job's pods have none."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}
    for kind, asked in (("DaemonSet", False), ("Job", True)):
        pod = {**o.POD, "metadata": {**o.POD["metadata"], "ownerReferences": [{**owner, "kind": kind}]}}
        assert holds(hook_of(pod), pod) is asked


def test_the_account_may_write_little_of_whatever_it_may_patch() -> None:
    """Each kind that the rights name with patch is bounded by the policy, in all but system namespaces."""
    (role,) = (
        role for role in EVERY if role["kind"] == "ClusterRole" and role["metadata"]["name"] == "bayplan"
    )
    rules = OBJECTS["ValidatingAdmissionPolicy"]["spec"]["matchConstraints"]["resourceRules"]
    bounded = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    patched = {
        (group, name)
        for rule in role["rules"]
        if "patch" in rule["verbs"] and "bayplan.dev" not in rule["apiGroups"]
        for group in rule["apiGroups"]
        for name in rule["resources"]
    }
    assert bounded == patched
    spaces = OBJECTS["ValidatingAdmissionPolicy"]["spec"]["validations"][0]["expression"]
    assert set(spaces.split('"')[1::2]) == set(NAMESPACES)


def test_no_right_is_a_wildcard_or_reads_all_secrets() -> None:
    """Secrets are named, and of the namespace of Bayplan alone."""
    roles = [role for role in EVERY if role["kind"] in ("Role", "ClusterRole")]
    rules = [(role["kind"], rule) for role in roles for rule in role["rules"]]
    for kind, rule in rules:
        assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
        if "secrets" in rule["resources"]:
            assert (kind, rule["resourceNames"]) == ("Role", ["bayplan-tls"])


def test_the_charts_templates_are_what_the_manifests_give() -> None:
    """A change of a manifest is one of the chart, or this fails until the generator was run."""
    templates = generate.charted()
    by_hand = {"NOTES.txt", "podmonitor.yaml"}
    assert {path.name for path in generate.chart_deployment.TEMPLATES.iterdir()} == templates.keys() | by_hand
    for name, text in templates.items():
        assert (generate.chart_deployment.TEMPLATES / name).read_text() == text, name


def test_the_charts_readme_lists_every_value() -> None:
    """A new value fails until it has a comment and the generator was run."""
    assert chart_readme.FILE.read_text() == chart_readme.text()


def test_a_value_is_described_by_the_comment_above_it() -> None:
    """Also inside a group; what a documented key holds is its default and has no row."""
    lines = ("# How many.", "replicas: 3", "image:", "  # Where,", "  # and whose.", "  tag: a", "# All.")
    text = "\n".join([*lines, "spread:", "  - a: 1", ""])
    assert dict(chart_readme.described(text)) == {
        "replicas": "How many.",
        "image.tag": "Where, and whose.",
        "spread": "All.",
    }


def test_the_chart_declares_the_kinds_that_it_installs() -> None:
    """Catalogs of charts read them from its annotations."""
    metadata = yaml.safe_load((generate.chart_deployment.MANIFESTS / "chart" / "Chart.yaml").read_text())
    declared = yaml.safe_load(metadata["annotations"]["artifacthub.io/crds"])
    installed = yaml.safe_load_all((generate.chart_deployment.MANIFESTS / "20-crds.yaml").read_text())
    assert [(row["name"], row["kind"], row["version"]) for row in declared] == [
        (crd["metadata"]["name"], crd["spec"]["names"]["kind"], version["name"])
        for crd in installed
        for version in crd["spec"]["versions"]
    ]
