"""The checks of `bayplan doctor`: each checks one property of a cluster and says what to correct.

Nothing is changed: writes are dry runs, which the webhook answers without side effects.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from certs.authority import CertificateError, read_bundle
from planner.model.labels import RESERVED_TAINT
from planner.model.words import counted, listed
from webhook.kube.api.client import ApiError, Json, Unreachable
from webhook.kube.api.discovery import served_path
from webhook.kube.controller.leader import lease_path
from webhook.kube.doctor.dry_run import examine_dry_run
from webhook.kube.doctor.patient import APPLY, Patient, settings_by_namespace
from webhook.kube.doctor.replica_checks import examine_replicas
from webhook.kube.doctor.rights import (
    account_of,
    certificate_rights,
    moves_findings,
    needed_rights,
    rights_finding,
)
from webhook.kube.installed import argument, deployment_path
from webhook.kube.ledger.documents import RESERVATIONS, entry_from
from webhook.kube.reports import GROUP, RESOURCE
from webhook.kube.scheduling import examine_scheduling
from webhook.kube.state.cluster_watch import ClusterWatch
from webhook.kube.state.findings import CheckFinding, findings_of
from webhook.kube.state.mode_findings import mode_findings
from webhook.kube.state.scheduling_findings import pack_finding
from webhook.kube.versions import examine_versions
from webhook.placement.taints import holder, reserved_taint_value
from webhook.workloads.stored import seconds

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"


OUR_KINDS = ("reservations", "topologies")
"""The resources of the group `bayplan.dev` that have to be served."""


RENEWAL = timedelta(days=15)
"""Certificates are renewed this long before they expire; one that is nearer to its expiry was not renewed."""


Check = Callable[[Patient], Awaitable[list[CheckFinding]]]


async def examine(patient: Patient) -> list[CheckFinding]:
    """Returns the findings of all checks, in an order in which the first failure explains later ones.

    An unreachable API server ends the checks; another error of the API server becomes a finding.
    """
    results: list[CheckFinding] = []
    for check in CHECKS:
        try:
            results += await check(patient)
        except Unreachable as error:
            return [
                *results,
                CheckFinding("API server", "fail", str(error), "check the kubeconfig and the network"),
            ]
        except ApiError as error:
            subject = check.__name__.removeprefix("examine").strip("_").replace("_", " ")
            results.append(
                CheckFinding(subject, "warn", f"cannot be looked at: {error}", "ask as an administrator")
            )
    return results


async def _api_server(patient: Patient) -> list[CheckFinding]:
    version = (await patient.api.get("/version")).get("gitVersion", "?")
    reached = CheckFinding("API server", "ok", f"{patient.api.host}, {version}")
    return [reached, *await examine_versions(patient.api, version)]


async def _kinds(patient: Patient) -> list[CheckFinding]:
    listed = await patient.api.find("/apis/bayplan.dev/v1alpha1") or {}
    served = {resource["name"] for resource in listed.get("resources") or []}
    missing = [name for name in OUR_KINDS if name not in served]
    if missing:
        return [CheckFinding("CRDs", "fail", f"not served: {', '.join(missing)}.bayplan.dev", APPLY)]
    return [CheckFinding("CRDs", "ok", f"{', '.join(OUR_KINDS)}.bayplan.dev are served")]


async def _reports(patient: Patient) -> list[CheckFinding]:
    path = await served_path(patient.api, GROUP, RESOURCE)
    if not path:
        message = "not served: what is decided in audit and warn shows in metrics and the audit log alone"
        return [CheckFinding("Reports", "warn", message, "install the CRD reports.openreports.io")]
    written, _ = await patient.api.list(path, fieldSelector=f"metadata.name={patient.name}")
    return [
        CheckFinding("Reports", "ok", f"reports.openreports.io are served; {len(written)} tell of namespaces")
    ]


async def _webhooks(patient: Patient) -> list[CheckFinding]:
    results: list[CheckFinding] = []
    for kind in ("mutating", "validating"):
        configuration = await patient.api.find(f"{CONFIGURATIONS}/{kind}webhookconfigurations/{patient.name}")
        subject = f"{kind} webhooks"
        if configuration is None:
            results.append(CheckFinding(subject, "fail", f"there is no configuration {patient.name}", APPLY))
            continue
        webhooks = configuration.get("webhooks") or []
        if not webhooks:
            message = f"the configuration {patient.name} has none: no object is sent to Bayplan"
            results.append(CheckFinding(subject, "fail", message, APPLY))
            continue
        flaws: dict[str, list[str]] = {}
        for webhook in webhooks:
            if flaw := _flaw(webhook, patient):
                flaws.setdefault(flaw, []).append(webhook["name"])
        for flaw, names in flaws.items():
            mend = "wait for a replica to publish its CA, or `bayplan certs bundle --base64` by hand"
            results.append(CheckFinding(subject, "fail", f"{listed(names, 2)}: {flaw}", mend))
        if not flaws:
            message = f"{counted(len(webhooks), 'webhook')}, each with a CA that is valid"
            results.append(CheckFinding(subject, "ok", message))
    return results


def _flaw(webhook: Json, patient: Patient) -> str:
    """Returns the fault in one webhook's configuration; "" for none."""
    try:
        bundle = read_bundle(base64.b64decode(webhook["clientConfig"].get("caBundle") or ""))
    except (CertificateError, binascii.Error, ValueError):
        return "caBundle holds no certificate"
    if all(authority.not_valid_after_utc <= patient.now for authority in bundle):
        return "every CA in caBundle has ended"
    return ""


async def _modes(patient: Patient) -> list[CheckFinding]:
    """Checks whether the webhooks agree with the mode of each namespace."""
    configuration = await patient.api.find(f"{CONFIGURATIONS}/mutatingwebhookconfigurations/{patient.name}")
    if configuration is None:  # `_webhooks` reports this
        return []
    spaces, _ = await patient.api.list("/api/v1/namespaces")
    return mode_findings(spaces, configuration, await settings_by_namespace(patient))


async def _certificate(patient: Patient) -> list[CheckFinding]:
    """Checks the serving certificate in the Secret: its expiry, and whether the webhook configurations trust
    it.
    """
    subject, name = "certificate", f"{patient.name}-tls"
    secret = await patient.api.find(f"/api/v1/namespaces/{patient.namespace}/secrets/{name}")
    data = (secret or {}).get("data") or {}
    if not data.get("tls.crt"):
        mend = "start a replica with --certificate-secret, or `bayplan certs init`"
        return [CheckFinding(subject, "fail", f"the Secret {patient.namespace}/{name} holds none", mend)]
    try:
        leaf = read_bundle(base64.b64decode(data["tls.crt"]))[0]
    except (CertificateError, binascii.Error) as error:
        return [
            CheckFinding(
                subject, "fail", f"the Secret {patient.namespace}/{name}: {error}", "delete its data"
            )
        ]
    left = leaf.not_valid_after_utc - patient.now
    if left <= timedelta(0):
        return [
            CheckFinding(
                subject, "fail", f"it ended {-left.days} days ago", "restart the replicas; see their log"
            )
        ]
    findings = [await _trusted(patient, leaf)]
    if left < RENEWAL:
        text = f"it ends in {left.days} days and should have been renewed"
        findings.append(CheckFinding(subject, "warn", text, "see the replicas' log"))
    return findings


async def _trusted(patient: Patient, leaf: x509.Certificate) -> CheckFinding:
    bundles: set[str] = set()
    for kind in ("mutating", "validating"):
        configuration = await patient.api.find(f"{CONFIGURATIONS}/{kind}webhookconfigurations/{patient.name}")
        for webhook in (configuration or {}).get("webhooks") or []:
            bundles.add(webhook["clientConfig"].get("caBundle") or "")
    ends = f"valid until {leaf.not_valid_after_utc:%Y-%m-%d}"
    if not bundles:
        return CheckFinding("certificate", "warn", f"{ends}; no configuration says whom to trust", APPLY)
    if all(_issued_by(leaf, bundle) for bundle in bundles):
        return CheckFinding("certificate", "ok", f"{ends}, and its CA is in every caBundle")
    mend = "wait for a replica to publish its CA, or put in `bayplan certs bundle --base64`"
    return CheckFinding("certificate", "fail", f"{ends}, but its CA is not in every caBundle", mend)


def _issued_by(leaf: x509.Certificate, bundle: str) -> bool:
    try:
        authorities = read_bundle(base64.b64decode(bundle))
    except (CertificateError, binascii.Error):
        return False
    for authority in authorities:
        try:
            leaf.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


async def _leader(patient: Patient) -> list[CheckFinding]:
    lease = await patient.api.find(lease_path(patient.namespace))
    spec = (lease or {}).get("spec") or {}
    renewed = spec.get("renewTime")
    age = patient.now.timestamp() - seconds(renewed) if renewed else 0
    if not spec.get("holderIdentity") or age > 3 * float(spec.get("leaseDurationSeconds") or 10):
        text = "no replica leads: queued gangs are not admitted, and no reservation is released"
        return [CheckFinding("controller", "fail", text, "start a replica without --no-controller")]
    return [CheckFinding("controller", "ok", f"{spec['holderIdentity']} leads")]


async def _rights(patient: Patient) -> list[CheckFinding]:
    account = account_of(patient.namespace, patient.name)
    settings = await settings_by_namespace(patient)
    spaces, _ = await patient.api.list("/api/v1/namespaces")
    names = [str(space["metadata"]["name"]) for space in spaces]
    deployment = await patient.api.find(deployment_path(patient.namespace, patient.name)) or {}
    secret = argument(deployment, "--certificate-secret")
    rights = needed_rights(patient.namespace)
    rights += certificate_rights(patient.namespace, secret, patient.name) if secret else []
    return [
        await rights_finding(patient.api, account, rights),
        *await moves_findings(patient.api, account, [name for name in names if settings(name).moves.after]),
    ]


async def _topology(patient: Patient) -> list[CheckFinding]:
    await patient.api.get("/api/v1/nodes", limit="1")  # fails at once if they may not be listed
    watch = ClusterWatch(patient.api, patient.namespace)
    await watch.start()
    try:
        async with asyncio.timeout(30):
            await watch.synced()
        snapshot = watch.snapshot()
        left_out = watch.left_out()
    except TimeoutError:
        return [CheckFinding("topology", "warn", f"not read within 30 s: {watch.waiting()}", "try again")]
    finally:
        await watch.close()
    assert snapshot is not None, "it is synced"
    bad = [CheckFinding("objects", "warn", f"left out: {why}", "fix the object") for why in left_out.values()]
    pack = pack_finding(snapshot.base.schedulers, (await settings_by_namespace(patient))("").pack)
    scheduling = await examine_scheduling(patient.api, snapshot)
    return [*findings_of(snapshot), *scheduling, pack, *bad[:10]]


async def _reservations(patient: Patient) -> list[CheckFinding]:
    """Finds Reservations that somebody made by hand for a workload's gang, which does not hold them, and
    taints of gangs that hold nothing any more.
    """
    booked, _ = await patient.api.list(RESERVATIONS)
    read = [entry_from(document) for document in booked]
    odd = [problem for entry, problem in read if problem and entry.reservation is not None]
    by_hand = [CheckFinding("reservations", "warn", problem) for problem in odd[:10]]
    held = (entry.reservation for entry, _ in read)
    holders = {holder(reservation.gang) for reservation in held if reservation is not None}
    return [*by_hand, *await _fence(patient, holders)]


async def _fence(patient: Patient, holders: Collection[str]) -> list[CheckFinding]:
    """Returns a finding about the nodes with our taint; none if no node has it. `holders`: the taint's values
    for the gangs that hold a place.
    """
    nodes, _ = await patient.api.list("/api/v1/nodes")
    values = {
        node["metadata"]["name"]: reserved_taint_value((node.get("spec") or {}).get("taints") or [])
        for node in nodes
    }
    fenced = {name: value for name, value in values.items() if value}
    if not fenced:
        return []
    left = sorted(name for name, value in fenced.items() if value not in holders)
    if left:
        text = f"{len(left)} of {len(fenced)} fenced nodes, such as {left[0]}, belong to no reservation"
        mend = f"let a replica with --fence taint lead, or kubectl taint nodes --all {RESERVED_TAINT}-"
        return [CheckFinding("fence", "warn", text, mend)]
    return [
        CheckFinding(
            "fence",
            "ok",
            f"{counted(len(fenced), 'node is', 'nodes are')} fenced by taint, each for a gang that holds it",
        )
    ]


CHECKS: tuple[Check, ...] = (
    _api_server, _kinds, _reports, _webhooks, _modes, _certificate, examine_replicas, _leader, _rights,
    _topology, _reservations, examine_dry_run,
)  # fmt: skip
"""All checks, in an order in which the first failure explains later ones."""
