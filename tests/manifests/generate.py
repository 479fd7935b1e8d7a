"""Write manifests/70-webhooks.yaml and expressions of 32-escapes.yaml and docs/recipes/skip from the table of
kinds, and the chart from the manifests: `python -m tests.manifests.generate`.

One webhook for each way of writing a pod template, because its match condition has to look into it: only
workloads that ask for GPUs, or carry a topology or bayplan.dev key, ever reach Bayplan.

Each of them stands there twice, for namespaces that are enforced and for those that are observed, since only
a label can tell the API server what becomes of a workload while nobody answers. Namespaces without the label
are observed, as the Deployment's `--mode` has it; `components/enforce` turns both, and is written here too.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import yaml

from tests.manifests import chart, chart_deployment, chart_readme, escapes, monitoring
from tests.manifests.conditions import anywhere, asking, keys, member
from webhook.admission.configuration.settings import MODES
from webhook.admission.used_topology import GROUPS as GROUPS_OF_TOPOLOGIES
from webhook.admission.used_topology import KUEUE_GROUP as KUEUE_TOPOLOGIES
from webhook.workloads import KINDS, WorkloadKind
from webhook.workloads.left_alone import NAMESPACES
from webhook.workloads.options import MODE

Json = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "manifests"
FILE = MANIFESTS / "70-webhooks.yaml"
ENFORCED = MANIFESTS / "components" / "enforce" / "webhooks.yaml"
NAMESPACE, SERVICE = "bayplan-system", "bayplan"
OBSERVED = "observed"

HEADER = """\
# Written by `python -m tests.manifests.generate` from the table of kinds (webhook/workloads/kinds.py).
# caBundle is left out: the replicas put their CA there (or cert-manager does), and applying again leaves it.
# kube-system and Bayplan's own namespace are left out, so that both start while every webhook is down; so are
# those of the cluster's other programs (webhook/workloads/left_alone.py), and the pods of DaemonSets: these
# have their nodes already, and would not start there while every webhook is down.
# The name sorts before KAI's own webhook, which looks at the schedulerName that ours sets.
# While every replica is down, GPU workloads are refused where the namespace's label bayplan.dev/mode is
# enforce, and admitted as ever everywhere else (the webhooks named `observed`). With components/enforce they
# are refused in namespaces without the label too.
"""

ENFORCED_HEADER = """\
# Written by `python -m tests.manifests.generate`. Namespaces without the label bayplan.dev/mode are enforced:
# while every replica is down, GPU workloads are refused there.
"""

Enforced = bool | None
"""Whether a webhook is for namespaces that are enforced, or for those that are observed; None for both."""

FAMILIES: dict[str, tuple[str, ...]] = {
    "pods": ("Pod",),
    "templates": ("Job", "Deployment", "ReplicaSet", "StatefulSet"),
    "cronjobs": ("CronJob",),
    "jobsets": ("JobSet",),
    "leaderworkersets": ("LeaderWorkerSet",),
    "training": ("PyTorchJob", "TFJob", "XGBoostJob", "JAXJob", "PaddleJob", "MPIJob"),
    "ray": ("RayCluster", "RayJob", "RayService"),
    "grove": ("PodCliqueSet",),
}
"""Kinds by the way in which they write pod templates: a webhook each, with a condition that looks there."""


GROUPS = ("scheduling.run.ai", "scheduling.k8s.io")
"""API groups whose PodGroups some policy looks at."""
NOTICE_SECONDS = 2
"""Seconds for a call that tells and does not ask: that an object is deleted. Whoever deletes waits no longer
for a hung Bayplan; the leader releases what the object held all the same."""
WISHES = ("topologyPolicy", "schedulingConstraints")
"""Fields of their specs that tell of topology."""
KAI_WISHES = ("topology", "requiredTopologyLevel", "preferredTopologyLevel")
"""Fields of KAI's topologyConstraint, which its client stores as {} where nobody wishes for anything
(KAI-Scheduler d5bc503a, pkg/apis/scheduling/v2alpha2/podgroup_types.go: no pointer, so never left out)."""
MADE_FOR_OTHERS = "object.apiVersion.startsWith('scheduling.run.ai/') && has(object.metadata.ownerReferences)"
"""PodGroups that KAI's podgrouper makes for a workload, whose annotations it copies: the workload was asked
about itself."""


def group_rules() -> list[Json]:
    """PodGroups: nothing is planned for them; policies mend and check what they say."""
    return [_rule([row], ["CREATE"]) for row in pod_groups() if row.group in GROUPS]


def pod_groups() -> list[WorkloadKind]:
    """Every system's PodGroup."""
    return [row for row in KINDS.values() if row.resource == "podgroups"]


def wishing() -> str:
    """A CEL expression: the PodGroup says something of topology."""
    stated = [f"has(object.spec.{field})" for field in WISHES]
    stated.append(_kai_wishes("object.spec"))
    stated.append(f"(has(object.spec.subGroups) && object.spec.subGroups.exists(p, {_kai_wishes('p')}))")
    spec = f"has(object.spec) && ({' || '.join(stated)})"
    return f"!({MADE_FOR_OTHERS}) && (({spec}) || ({keys('object.metadata')}))"


def _kai_wishes(part: str) -> str:
    fields = " || ".join(f"has({part}.topologyConstraint.{field})" for field in KAI_WISHES)
    return f"(has({part}.topologyConstraint) && ({fields}))"


NAMESPACE_RULE: Json = {
    "apiGroups": [""],
    "apiVersions": ["*"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["namespaces"],
    "scope": "Cluster",
}


TOPOLOGY_RULES: list[Json] = [
    {
        "apiGroups": list(GROUPS_OF_TOPOLOGIES),
        "apiVersions": ["*"],
        "operations": ["UPDATE", "DELETE"],
        "resources": ["topologies"],
        "scope": "Cluster",
    },
    {
        "apiGroups": [KUEUE_TOPOLOGIES],
        "apiVersions": ["*"],
        "operations": ["UPDATE", "DELETE"],
        "resources": ["resourceflavors"],
        "scope": "Cluster",
    },
]


def loses_levels() -> str:
    """A CEL expression: a Topology, or what attaches it, goes or is another one afterwards."""
    return "request.operation == 'DELETE' || object.spec != oldObject.spec"


def no_mode() -> str:
    """A CEL expression: the label of a Namespace is no mode. Of any other Namespace nobody is asked."""
    labels = "object.metadata.labels"
    return f"has({labels}) && '{MODE}' in {labels} && !({labels}['{MODE}'] in {list(MODES)})"


def rows_of(kinds: tuple[str, ...]) -> list[WorkloadKind]:
    """The rows of these kinds."""
    return [row for row in KINDS.values() if row.name in kinds]


def rules(kinds: tuple[str, ...], operations: list[str]) -> list[Json]:
    """One rule for each API group of these kinds."""
    rows = rows_of(kinds)
    return [_rule([row for row in rows if row.group == group], operations) for group in _groups(rows)]


def _groups(rows: list[WorkloadKind]) -> list[str]:
    return list(dict.fromkeys(row.group for row in rows))


def _rule(rows: list[WorkloadKind], operations: list[str]) -> Json:
    return {
        "apiGroups": [rows[0].group],
        "apiVersions": ["*"],
        "operations": operations,
        "resources": [row.resource for row in rows],
        "scope": "Namespaced",
    }


def selector(enforced: Enforced, *, by_default: bool) -> Json:
    """The namespaces of a webhook; `by_default`: those without the label are enforced.

    A label that is no mode counts as none, so the enforced are those that are not observed, or the other way
    round.
    """
    chosen = {
        None: {"operator": "NotIn", "values": ["off"]},
        True: {"operator": "NotIn", "values": ["warn", "audit", "off"]}
        if by_default
        else {"operator": "In", "values": ["enforce"]},
        False: {"operator": "In", "values": ["warn", "audit"]}
        if by_default
        else {"operator": "NotIn", "values": ["enforce", "off"]},
    }
    left_alone = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(NAMESPACES)}
    return {"matchExpressions": [left_alone, {"key": MODE, **chosen[enforced]}]}


def enforced_and_observed(name: str, path: str, rows: list[Json], condition: str) -> list[Json]:
    """The webhook that fails closed where Bayplan acts, and the one that lets pass where it only looks."""
    return [
        webhook(name, path, "Fail", rows, condition, enforced=True),
        webhook(name, path, "Ignore", rows, condition, enforced=False),
    ]


def webhook(
    name: str,
    path: str,
    failure: str,
    rows: list[Json],
    condition: str,
    *,
    enforced: Enforced = None,
    timeout: int = 5,
) -> Json:
    """One webhook entry, without what only mutating ones have."""
    about = {"namespaces": "no-mode", "topologies": "levels-go"}.get(name, "gpu-workloads")
    conditions = [{"name": about, "expression": condition}]
    if name in ("pods", "members"):
        conditions.insert(0, {"name": "not-on-each-node", "expression": anywhere()})
    return {
        "name": f"{name}.{OBSERVED}.bayplan.dev" if enforced is False else f"{name}.bayplan.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {"namespace": NAMESPACE, "name": SERVICE, "path": path, "port": 443},
        },
        "failurePolicy": failure,
        "matchPolicy": "Equivalent",
        "namespaceSelector": selector(enforced, by_default=False),
        "rules": rows,
        "matchConditions": conditions,
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": timeout,
    }


def mutating() -> Json:
    """The mutating configuration: what asks for GPUs is planned or refused, never let through unplanned.

    It sees a gang's pods without a GPU too, so that the gang has one plan and one scheduler. Those are let
    through where it cannot be reached, for gangs that have nothing to do with GPUs name themselves alike.
    """
    hooks = [
        hook
        for name, kinds in FAMILIES.items()
        for hook in enforced_and_observed(
            name, "/mutate", rules(kinds, _operations(name)), asking(rows_of(kinds))
        )
    ]
    pods = FAMILIES["pods"]
    beside = f"{member()} && !{asking(rows_of(pods))}"
    hooks.append(webhook("members", "/mutate", "Ignore", rules(pods, _operations("pods")), beside))
    hooks.append(webhook("podgroups", "/mutate", "Ignore", group_rules(), wishing()))
    reinvoked = [hook | {"reinvocationPolicy": "IfNeeded"} for hook in hooks]
    return _configuration("MutatingWebhookConfiguration", reinvoked)


def validating() -> Json:
    """The validating configuration: refuse what nobody looked at; a deletion is only ever noted."""
    hooks = [
        hook
        for name, kinds in FAMILIES.items()
        for hook in enforced_and_observed(
            name, "/validate", rules(kinds, _operations(name)), asking(rows_of(kinds))
        )
    ]
    hooks.append(webhook("podgroups", "/validate", "Ignore", group_rules(), wishing()))
    hooks.append(webhook("namespaces", "/validate", "Ignore", [NAMESPACE_RULE], no_mode()))
    hooks.append(webhook("topologies", "/validate", "Ignore", TOPOLOGY_RULES, loses_levels()))
    every = tuple(kind for kinds in FAMILIES.values() for kind in kinds)
    held = (
        "has(oldObject.metadata.annotations) && 'bayplan.dev/reservation' in oldObject.metadata.annotations"
    )
    hooks.append(
        webhook("release", "/validate", "Ignore", rules(every, ["DELETE"]), held, timeout=NOTICE_SECONDS)
    )
    # Pods without a workload hold the place in the name of their PodGroup, which carries no mark of it;
    # a PodGroup with an owner was made for a workload, and the place is that workload's.
    ends = [_rule([row], ["DELETE"]) for row in pod_groups()]
    unowned = "!has(oldObject.metadata.ownerReferences)"
    hooks.append(webhook("groups", "/validate", "Ignore", ends, unowned, timeout=NOTICE_SECONDS))
    return _configuration("ValidatingWebhookConfiguration", hooks)


def _operations(name: str) -> list[str]:
    """Pods hardly change after creation, and their status and labels often."""
    return ["CREATE"] if name == "pods" else ["CREATE", "UPDATE"]


def _configuration(kind: str, hooks: list[Json]) -> Json:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "bayplan", "labels": {"app.kubernetes.io/name": "bayplan"}},
        "webhooks": hooks,
    }


class _Plain(yaml.SafeDumper):
    """Without anchors, which not every tool expands."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def enforcing(configuration: Json) -> Json:
    """The patch with which namespaces without the label are enforced: selectors alone, webhooks by name."""
    selectors = [
        {"name": hook["name"], "namespaceSelector": selector(enforced, by_default=True)}
        for hook in configuration["webhooks"]
        if (enforced := _enforced(hook)) is not None
    ]
    head = {key: configuration[key] for key in ("apiVersion", "kind")}
    return {**head, "metadata": {"name": configuration["metadata"]["name"]}, "webhooks": selectors}


def _enforced(hook: Json) -> Enforced:
    if hook["failurePolicy"] == "Fail":
        return True
    return False if f".{OBSERVED}." in hook["name"] else None


def text() -> str:
    """The text of 70-webhooks.yaml."""
    return HEADER + _dumped([mutating(), validating()])


def enforced_text() -> str:
    """The text of the patch in components/enforce."""
    return ENFORCED_HEADER + _dumped([enforcing(mutating()), enforcing(validating())])


def _dumped(documents: list[Any]) -> str:
    return "---\n".join(
        yaml.dump(document, Dumper=_Plain, sort_keys=False, width=4096) for document in documents
    )


def charted() -> dict[str, str]:
    """The text of each of the chart's templates that is made from the manifests, by the name of its file."""
    return chart.templates(
        (_mode_row(enforced, by_default=False), _mode_row(enforced, by_default=True))
        for enforced in (True, False)
    )


def _mode_row(enforced: bool, *, by_default: bool) -> str:
    """The row of a selector that looks at the label, as it stands in the file."""
    row = selector(enforced, by_default=by_default)["matchExpressions"][1:]
    return textwrap.indent(_dumped([row]), " " * 4)


if __name__ == "__main__":
    FILE.write_text(text())
    ENFORCED.write_text(enforced_text())
    escapes.FILE.write_text(escapes.written(escapes.FILE.read_text()))
    escapes.RECIPE.write_text(escapes.written(escapes.RECIPE.read_text(), escapes.OF_RECIPE))
    monitoring.DASHBOARD.write_text(monitoring.text())
    for name, template in charted().items():
        (chart_deployment.TEMPLATES / name).write_text(template)
    chart_readme.FILE.write_text(chart_readme.text())
