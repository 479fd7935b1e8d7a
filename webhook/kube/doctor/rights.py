"""Checks what the service account of the replicas may do, according to RBAC."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from planner.manifests.settings import HISTORY_CONFIG
from planner.manifests.topologies.scheduler_objects import KUEUE
from planner.model.words import listed
from webhook.kube.api.client import Api
from webhook.kube.controller.leader import LEASE
from webhook.kube.doctor.patient import APPLY
from webhook.kube.reports import GROUP, RESOURCE
from webhook.kube.state.cluster_watch import EXTRAS, GANGS
from webhook.kube.state.findings import CheckFinding
from webhook.kube.state.gangs import NOTED, WATCHED
from webhook.kube.state.kueue_watch import WORKLOADS
from webhook.workloads.keys.annotation_keys import DEFRAGMENTATION

Right = dict[str, str]
"""A permission in the form of `resourceAttributes` of a SubjectAccessReview."""

MOVES: tuple[Right, ...] = (
    {"group": "", "resource": "nodes", "verb": "get"},
    {"group": "", "resource": "nodes", "verb": "patch"},
    {"group": "", "resource": "pods", "subresource": "eviction", "verb": "create"},
    {"group": "policy", "resource": "poddisruptionbudgets", "verb": "list"},
)
"""The leader's additional permissions for moving pods for waiting gangs, which components/defragmentation
grants.
"""


def account_of(namespace: str, name: str) -> str:
    """Returns the user name of a ServiceAccount."""
    return f"system:serviceaccount:{namespace}:{name}"


async def rights_finding(api: Api, account: str, wanted: Sequence[Right]) -> CheckFinding:
    """Returns a finding that says whether the account has these permissions."""
    if missing := await _missing(api, account, wanted):
        text = f"{account} may not {', '.join(missing[:6])}{' …' if len(missing) > 6 else ''}"
        return CheckFinding("RBAC", "fail", text, APPLY)
    return CheckFinding("RBAC", "ok", f"{account} may do all {len(wanted)} things that it has to")


async def moves_findings(api: Api, account: str, namespaces: Sequence[str]) -> list[CheckFinding]:
    """Returns findings about moves for waiting gangs. `namespaces`: those for whose gangs other pods are
    moved.
    """
    nodes, _ = await api.list("/api/v1/nodes")
    marked = [
        node["metadata"]["name"]
        for node in nodes
        if (node["metadata"].get("annotations") or {}).get(DEFRAGMENTATION)
    ]
    subject, findings = "defragmentation", []
    if marked:
        text = f"{listed(marked, 4)} cordoned for moves that go on, or were stopped"
        mend = "where none go on: bayplan defrag --resume, or --undo"
        findings.append(CheckFinding(subject, "warn", text, mend))
    if not namespaces:
        return findings
    if missing := await _missing(api, account, MOVES):
        text = f"defrag.after-seconds is set, and {account} may not {', '.join(missing)}: nothing moves"
        mend = "apply manifests/components/defragmentation (Helm: defragmentation=true)"
        return [*findings, CheckFinding(subject, "fail", text, mend)]
    text = f"the leader moves others for gangs of {listed(sorted(namespaces), 4)} that wait for long"
    return [*findings, CheckFinding(subject, "ok", text)]


def needed_rights(namespace: str) -> list[Right]:
    """Returns the permissions of a replica; `namespace` is that of the installation.

    Not among them: `certificate_rights` and those for taints on nodes, which are optional.
    """
    reads = [("", name) for name in ("nodes", "pods", "namespaces", "configmaps")]
    reads += [(extra.group, extra.resource) for extra in (*EXTRAS, *GANGS)]
    reads.append((KUEUE, WORKLOADS))
    workloads = [(row.group, row.resource) for row in WATCHED]
    rows = [(group, resource, verb) for group, resource in [*reads, *workloads] for verb in ("list", "watch")]
    rows += [(row.group, row.resource, "patch") for row in NOTED]
    rows += [("", "pods", "get"), ("", "pods", "patch"), ("", "events", "create")]
    verbs = ("get", "list", "watch", "create", "patch", "delete")
    rows += [("bayplan.dev", "reservations", verb) for verb in verbs]
    rows += [(GROUP, RESOURCE, "create"), ("authorization.k8s.io", "subjectaccessreviews", "create")]
    resource_rights = [{"group": group, "resource": resource, "verb": verb} for group, resource, verb in rows]
    lease = {"group": "coordination.k8s.io", "resource": "leases", "namespace": namespace}
    by_name = [{**lease, "verb": verb, "name": LEASE} for verb in ("get", "update")]
    history = {"group": "", "resource": "configmaps", "namespace": namespace}
    report = {"group": GROUP, "resource": RESOURCE, "name": "bayplan"}
    by_name += [{**report, "verb": verb} for verb in ("get", "list", "update")]
    by_name.append({**history, "verb": "patch", "name": HISTORY_CONFIG})
    return [*resource_rights, {**lease, "verb": "create"}, *by_name]


def certificate_rights(namespace: str, secret: str, name: str) -> list[Right]:
    """Returns the permissions of a replica that issues the certificates. `name`: that of the webhook
    configurations.
    """
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    objects = [{"group": "", "resource": "secrets", "namespace": namespace, "name": secret}]
    objects += [{"group": "admissionregistration.k8s.io", "resource": kind, "name": name} for kind in kinds]
    return [{**right, "verb": verb} for right in objects for verb in ("get", "patch")]


async def _missing(api: Api, account: str, wanted: Iterable[Right]) -> list[str]:
    """Returns the permissions that the account lacks, as text."""
    rights = list(wanted)
    answers = await asyncio.gather(*(_may(api, account, right) for right in rights))
    return [_words(right) for right, may in zip(rights, answers, strict=True) if not may]


def _words(right: Right) -> str:
    group = f".{right['group']}" if right["group"] else ""
    part = f"/{right['subresource']}" if "subresource" in right else ""
    return f"{right['verb']} {right['resource']}{part}{group}"


async def _may(api: Api, account: str, right: Right) -> bool:
    namespace = account.split(":")[2]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    body: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": account, "groups": groups, "resourceAttributes": right},
    }
    review = await api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    return bool((review.get("status") or {}).get("allowed"))
