"""The checks of `bayplan doctor`: each checks one property of a cluster and says what to correct.

Nothing is changed: writes are dry runs, which the webhook answers without side effects.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from certs.authority import CertificateError, read_bundle
from planner.model.labels import RESERVED_TAINT
from planner.model.resources import GPU
from planner.model.words import counted
from webhook.admission.configuration.parameters import read_parameters
from webhook.admission.configuration.settings import Settings, same_in_all_namespaces
from webhook.admission.modes import mode_in_force
from webhook.kube.api.client import Api, ApiError, Json, Unreachable
from webhook.kube.api.discovery import served_path
from webhook.kube.controller.leader import lease_path
from webhook.kube.doctor.rights import account_of, moves_findings, rights_finding
from webhook.kube.installed import deployment_path, installed_settings
from webhook.kube.ledger.documents import RESERVATIONS
from webhook.kube.reports import GROUP, RESOURCE
from webhook.kube.scheduling import examine_scheduling
from webhook.kube.state.cluster_watch import ClusterWatch
from webhook.kube.state.findings import CheckFinding, findings_of
from webhook.kube.state.mode_findings import mode_findings
from webhook.kube.state.scheduling_findings import pack_finding
from webhook.kube.versions import examine_versions
from webhook.placement.taints import holder, reserved_taint_value
from webhook.policy.model.parameters import PARAMETERS
from webhook.policy.model.policy import PolicySet
from webhook.workloads.keys.annotation_keys import PLACEMENT
from webhook.workloads.stored import seconds

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"


OUR_KINDS = ("reservations", "topologies")
"""The resources of the group `bayplan.dev` that have to be served."""


RENEWAL = timedelta(days=15)
"""Certificates are renewed this long before they expire; one that is nearer to its expiry was not renewed."""


PROBES = 7
"""Number of dry runs of a pod: enough for a median, and done in seconds."""


SLOW_SECONDS = 1.0
"""Duration of one admission from which a warning is given; a kubectl user notices a second."""


APPLY = "kubectl apply -k manifests/"


@dataclass(frozen=True, slots=True)
class Patient:
    """The cluster and the installation that are checked. `namespace`, `name`: of the Deployment."""

    api: Api
    namespace: str
    name: str

    @property
    def now(self) -> datetime:
        """The API server's time, which decides whether it accepts a certificate; that of the user's machine
        may be wrong."""
        return datetime.fromtimestamp(self.api.now(), UTC)


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
            subject = check.__name__.strip("_").replace("_", " ")
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
        flaws = [flaw for webhook in webhooks if (flaw := _flaw(webhook, patient))]
        if flaws:
            mend = "wait for a replica to publish its CA, or `bayplan certs bundle --base64` by hand"
            results += [CheckFinding(subject, "fail", flaw, mend) for flaw in dict.fromkeys(flaws)]
        else:
            message = f"{counted(len(webhooks), 'webhook')}, each with a CA that is valid"
            results.append(CheckFinding(subject, "ok", message))
    return results


def _flaw(webhook: Json, patient: Patient) -> str:
    """Returns the fault in one webhook's configuration; "" for none."""
    try:
        bundle = read_bundle(base64.b64decode(webhook["clientConfig"].get("caBundle") or ""))
    except (CertificateError, binascii.Error, ValueError):
        return f"{webhook['name']}: caBundle holds no certificate"
    if all(authority.not_valid_after_utc <= patient.now for authority in bundle):
        return f"{webhook['name']}: every CA in caBundle has ended"
    return ""


async def _modes(patient: Patient) -> list[CheckFinding]:
    """Checks whether the webhooks agree with the mode of each namespace."""
    configuration = await patient.api.find(f"{CONFIGURATIONS}/mutatingwebhookconfigurations/{patient.name}")
    if configuration is None:  # `_webhooks` reports this
        return []
    spaces, _ = await patient.api.list("/api/v1/namespaces")
    return mode_findings(spaces, configuration, await _settings(patient))


async def _settings(patient: Patient) -> Callable[[str], Settings]:
    """Returns the settings by namespace, from the Deployment's `--mode` and the ConfigMap."""
    chosen = same_in_all_namespaces(await installed_settings(patient.api, patient.namespace, patient.name))
    configured = await patient.api.find(f"/api/v1/namespaces/{patient.namespace}/configmaps/{PARAMETERS}")
    return partial(read_parameters(PolicySet(), configured)[0].settings, chosen)


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


async def _replicas(patient: Patient) -> list[CheckFinding]:
    path = deployment_path(patient.namespace, patient.name)
    deployment = await patient.api.find(path)
    if deployment is None:
        text = f"there is no Deployment {patient.namespace}/{patient.name}"
        return [CheckFinding("replicas", "warn", text, f"{APPLY}, unless it runs elsewhere")]
    wanted = int((deployment.get("spec") or {}).get("replicas") or 0)
    ready = int((deployment.get("status") or {}).get("readyReplicas") or 0)
    text = f"{ready} of {wanted} are ready"
    if not ready:
        mend = f"kubectl -n {patient.namespace} describe pods; /readyz says what each waits for"
        return [CheckFinding("replicas", "fail", text, mend)]
    return [CheckFinding("replicas", "ok" if ready == wanted else "warn", text)]


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
    settings = await _settings(patient)
    spaces, _ = await patient.api.list("/api/v1/namespaces")
    names = [str(space["metadata"]["name"]) for space in spaces]
    return [
        await rights_finding(patient.api, patient.namespace, account),
        *await moves_findings(patient.api, account, [name for name in names if settings(name).moves.after]),
    ]


async def _topology(patient: Patient) -> list[CheckFinding]:
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
    pack = pack_finding(snapshot.base.schedulers, (await _settings(patient))("").pack)
    scheduling = await examine_scheduling(patient.api, snapshot)
    return [*findings_of(snapshot), *scheduling, pack, *bad[:10]]


async def _latency(patient: Patient) -> list[CheckFinding]:
    """Measures dry runs of a GPU pod, which take the same path as every GPU pod."""
    took: list[float] = []
    stored: Json = {}
    for number in range(PROBES):
        started = time.perf_counter()
        try:
            stored = await patient.api.create("/api/v1/namespaces/default/pods", _probe(number), dryRun="All")
        except ApiError as error:
            if error.status in (401, 403) and "admission webhook" not in error.message:
                raise
            mend = "see the replicas' log; GPU workloads are refused while this lasts"
            return [CheckFinding("dry run", "fail", f"a GPU pod is refused: {error}", mend)]
        took.append(time.perf_counter() - started)
    middle, worst = statistics.median(took), max(took)
    text = (
        f"a GPU pod is admitted in {1000 * middle:.0f} ms (median of {PROBES}, worst {1000 * worst:.0f} ms)"
    )
    space = await patient.api.find("/api/v1/namespaces/default")
    mode = mode_in_force(space, (await _settings(patient))("default")).mode
    if mode != "enforce":
        text = f"{text}; nothing tells whether it was planned, in mode {mode} of namespace default"
    elif PLACEMENT not in ((stored.get("metadata") or {}).get("annotations") or {}):
        mend = "check that the Service reaches a replica, and the namespaces that are left out"
        return [CheckFinding("dry run", "fail", f"{text}, but no webhook planned it", mend)]
    if worst > SLOW_SECONDS:
        return [CheckFinding("dry run", "warn", text, "give the replicas more CPU, or look at /metrics")]
    return [CheckFinding("dry run", "ok", text)]


def _probe(number: int) -> Json:
    container = {"name": "probe", "image": "none", "resources": {"limits": {GPU: "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"bayplan-doctor-{number}", "namespace": "default"},
        "spec": {"containers": [container]},
    }


async def _fence(patient: Patient) -> list[CheckFinding]:
    """Finds taints of gangs that hold nothing any more; returns no finding if no node has our taint."""
    nodes, _ = await patient.api.list("/api/v1/nodes")
    values = {
        node["metadata"]["name"]: reserved_taint_value((node.get("spec") or {}).get("taints") or [])
        for node in nodes
    }
    fenced = {name: value for name, value in values.items() if value}
    if not fenced:
        return []
    booked, _ = await patient.api.list(RESERVATIONS)
    holders = {holder(str((reservation.get("spec") or {}).get("gang", ""))) for reservation in booked}
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
    _api_server, _kinds, _reports, _webhooks, _modes, _certificate, _replicas, _leader, _rights,
    _topology, _fence, _latency,
)  # fmt: skip
"""All checks, in an order in which the first failure explains later ones."""
