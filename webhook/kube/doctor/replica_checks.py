"""Checks whether the replicas run, and what they say of themselves."""

from __future__ import annotations

from collections.abc import Iterable

from planner.model.words import counted, listed, shortened
from webhook.kube.api.client import ApiError, Json
from webhook.kube.doctor.patient import APPLY, Patient
from webhook.kube.installed import deployment_path
from webhook.kube.replicas import ReplicaAnswers, ask_replicas
from webhook.kube.state.findings import CheckFinding

PROBLEMS = 10
"""Maximum number of problems of the replicas that are shown."""


async def examine_replicas(patient: Patient) -> list[CheckFinding]:
    """Returns findings about the Deployment and about the state of each running replica."""
    deployment = await patient.api.find(deployment_path(patient.namespace, patient.name))
    replicas = await ask_replicas(patient.api, patient.namespace, "readyz")
    return [_readiness(deployment, patient), *_states(replicas)]


def _readiness(deployment: Json | None, patient: Patient) -> CheckFinding:
    if deployment is None:
        text = f"there is no Deployment {patient.namespace}/{patient.name}"
        return CheckFinding("replicas", "warn", text, f"{APPLY}, unless it runs elsewhere")
    wanted = int((deployment.get("spec") or {}).get("replicas") or 0)
    status = deployment.get("status") or {}
    ready = int(status.get("readyReplicas") or 0)
    text = f"{ready} of {wanted} are ready"
    refusals = [
        f"; pods cannot be created: {condition.get('message')}"
        for condition in status.get("conditions") or []
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True"
    ]
    if ready == wanted and ready:
        return CheckFinding("replicas", "ok", text)
    mend = f"kubectl -n {patient.namespace} describe pods; /readyz says what each waits for"
    if refusals:
        mend = f"change what refuses them in namespace {patient.namespace}, or the pods' resources"
    return CheckFinding("replicas", "warn" if ready else "fail", text + "".join(refusals), mend)


def _states(replicas: ReplicaAnswers) -> Iterable[CheckFinding]:
    """Returns what replicas say in /readyz: changes that they cannot use, and the policies in use."""
    subject, count = "state", len(replicas.answers) + len(replicas.errors)
    by_problem: dict[str, list[str]] = {}
    for name, answer in replicas.answers.items():
        for problem in answer.get("problems") or []:
            by_problem.setdefault(str(problem), []).append(name)
    for problem, names in list(by_problem.items())[:PROBLEMS]:
        text = f"{len(names)} of {counted(count, 'replica')}: {shortened(problem, 400)}"
        yield CheckFinding(subject, "warn", text, "correct it; until then the last valid state is in use")
    revisions = sorted({str(answer.get("revision")) for answer in replicas.answers.values()})
    if len(revisions) > 1:
        text = f"replicas decide by {len(revisions)} revisions of the policies: {listed(revisions, 4)}"
        yield CheckFinding(subject, "warn", text, "wait for a minute; then see the replicas' log")
    if replicas.errors:
        name, error = next(iter(replicas.errors.items()))
        text = f"{len(replicas.errors)} of {counted(count, 'replica')} cannot be asked: {name}: {error}"
        yield CheckFinding(subject, "warn", shortened(text, 400), _mend(error))
    elif replicas.answers and not by_problem and len(revisions) == 1:
        text = f"the newest policies and parameters are in use (revision {revisions[0]})"
        yield CheckFinding(subject, "ok", text)


def _mend(error: ApiError) -> str:
    if error.status == 403:
        return "ask as a user who may get pods/proxy"
    return "see /readyz of each replica, for example by kubectl port-forward"
