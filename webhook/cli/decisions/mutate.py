"""`bayplan mutate`: prints each object as the webhook would change it."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment, namespaces, pod_groups
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, subcommand
from webhook.files.reader import Document
from webhook.placement.group_members import GroupMember, members
from webhook.placement.planning import plan_workload
from webhook.policy.engine.skipped import skipped_notice
from webhook.policy.model.policy import PolicySet
from webhook.report.documents import as_list, as_yaml, indented
from webhook.report.printable import printable_name
from webhook.wire.request import from_object
from webhook.workloads import Workload, read
from webhook.workloads.templates import pod_specs

EPILOG = """examples:
  bayplan mutate -f job.yaml                          only policies that need no cluster
  bayplan mutate -c cluster.yaml -f job.yaml -o diff  show the changes as a diff
  bayplan mutate -c cluster.yaml -f job.yaml -o patch print the JSON Patch for the API server
  bayplan mutate -p my-policies/ -f job.yaml | kubectl apply -f -

The mode of a namespace is read from the label bayplan.dev/mode of a Namespace in the manifests or in CLUSTER;
--mode is used for all other namespaces. In modes other than enforce, objects are printed unchanged. Standard
error then says what enforce would do (warn), or that nothing is done (audit).

exit status: 0 done; 1 a policy denied or failed, or a gang was rejected; 2 bad input or usage
"""


@dataclass(frozen=True, slots=True)
class MutationResult:
    """An object in a manifest, and the decision on it. `name`: the object's NAMESPACE/KIND/NAME."""

    document: Document
    name: str
    decision: Decision


def add_parser(subparsers: Subparsers) -> None:
    """Adds `mutate`."""
    parser = subcommand(
        subparsers,
        "mutate",
        description="Run policies and planning on manifests, and print the objects as they would be stored.",
        epilog=EPILOG,
    )
    inputs.add_manifests(parser)
    inputs.add_cluster(parser, required=False)
    inputs.add_policies(parser)
    inputs.add_mode(parser)
    parser.add_argument("-o", "--output", choices=tuple(_FORMATS), default="yaml")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Decides on each object and prints the results. Raises `InputError` or `PolicyError` for invalid
    input.
    """
    policies = inputs.policies(args.policies)
    snapshot, environment = inputs.cluster_and_environment(args)
    environment = inputs.in_force(environment, policies)
    documents = inputs.without_duplicates(inputs.manifests(args.filename))
    outcomes = decide_all(
        policies, snapshot and inputs.with_claims_of(snapshot, documents), documents, environment
    )
    for outcome in outcomes:
        for line in _messages(outcome):
            inputs.note(line)
    for line in notes(policies, outcomes):
        inputs.note(line)
    sys.stdout.write(_FORMATS[args.output]([o for o in outcomes if o.decision.response.allowed]))
    return exit_status(outcomes)


def exit_status(outcomes: Sequence[MutationResult]) -> int:
    """Returns 2 if an object is malformed, else 1 if an object is refused, else 0."""
    if any(outcome.decision.malformed for outcome in outcomes):
        return 2
    return 0 if all(outcome.decision.response.allowed for outcome in outcomes) else 1


def _messages(outcome: MutationResult) -> list[str]:
    """Returns the lines for standard error: warnings, the mode if it prevents changes, and the refusal if
    there is one. Each line has the object's name.
    """
    response = outcome.decision.response
    lines = [f"Warning: {_about(outcome, warning)}" for warning in response.warnings]
    mode = outcome.decision.mode
    if mode == "off" or (mode == "audit" and outcome.decision.outcome != "unchanged"):
        lines.append(_about(outcome, f"mode {mode}: nothing is changed, refused or held"))
    if not response.allowed:
        word = "malformed" if outcome.decision.malformed else "refused"
        lines.append(f"{outcome.document.file}: {word}: {_about(outcome, response.message)}")
    return lines


def _about(outcome: MutationResult, text: str) -> str:
    return text if text.startswith(outcome.name) else f"{outcome.name}: {text}"


def with_manifests(environment: Environment, documents: Sequence[Document]) -> Environment:
    """Returns the environment with what the manifests add to it: Namespaces, PodGroups and the members of
    PodGroups.
    """
    values = [document.value for document in documents]
    return replace(
        environment,
        namespaces={**environment.namespaces, **namespaces(values)},
        podgroups={**environment.podgroups, **pod_groups(values)},
        members=tuple(member for value in values for member in _members(value)),
    )


def _members(value: dict[str, Any]) -> list[GroupMember]:
    """Returns the object's pods that belong to a PodGroup of scheduling.k8s.io; none if the object is
    malformed.
    """
    try:
        return list(members(value, "default", pod_specs(value, read(value))))
    except InputError:
        return []


def with_shares(environment: Environment, policies: PolicySet, documents: Sequence[Document]) -> Environment:
    """Returns the environment with the workloads in the manifests that have a share in a gang of several
    objects, as mutating policies change them.

    With them, the decision on the first of a gang's workloads can plan the whole gang.
    """
    sharing: dict[str, list[Workload]] = {}
    for index, document in enumerate(documents):
        try:
            if read(document.value, podgroups=environment.podgroups, request_uid=str(index)).share is None:
                continue
            request = from_object(document.value, uid=str(index))
            changed = decide(request, policies, None, "mutate", environment).object or document.value
            member = read(changed, podgroups=environment.podgroups, request_uid=str(index))
        except InputError:  # `decide_all` refuses it
            continue
        if member.gangs and member.share is not None and not (member.suspended or member.skip):
            sharing.setdefault(member.gangs[0].name, []).append(member)
    by_member = {member.name: members for members in sharing.values() for member in members}
    return replace(environment, sharing=by_member)


def decide_all(
    policies: PolicySet,
    snapshot: Snapshot | None,
    documents: Sequence[Document],
    environment: Environment,
    *,
    together: bool = True,
    replicas: bool = False,
) -> list[MutationResult]:
    """Decides on the creation of each object, and returns the results in the same order.

    `together`: each decision sees the reservations of the decisions before it. `replicas`: plans pods that
    are admitted one by one, such as those of a Deployment, one after the other, each on the capacity that the
    pods before it leave.
    """
    outcomes = []
    environment = with_shares(with_manifests(environment, documents), policies, documents)
    for index, document in enumerate(documents):
        request = from_object(document.value, uid=str(index))
        decision = decide(request, policies, snapshot, "mutate", environment)
        if replicas and snapshot is not None:
            decision = _with_replicas(decision, snapshot, document, environment, request.uid)
        in_effect = decision.mode == "enforce" and decision.response.allowed
        if together and snapshot is not None and in_effect and decision.plan is not None:
            for reservation in decision.plan.reservations:
                snapshot = snapshot.with_reservation(reservation)
        outcomes.append(MutationResult(document, _name(request.namespace, document.value), decision))
    return outcomes


def _with_replicas(
    decision: Decision, snapshot: Snapshot, document: Document, environment: Environment, uid: str
) -> Decision:
    """Returns the decision with a plan in which each pod is placed on the capacity that the pods before it
    leave.

    The admission of a Deployment reserves nothing, so in the decision's plan every replica gets the same
    place.
    """
    plan = decision.plan
    if plan is None:
        return decision
    workload = read(document.value, podgroups=environment.podgroups, request_uid=uid)
    if workload.holds or workload.suspended:
        return decision
    gangs = tuple(placed.asked for placed in plan.placed)
    planned = plan_workload(snapshot, replace(workload, gangs=gangs, holds=True))
    return replace(decision, plan=replace(planned, whole=plan.whole, preview=plan.preview))


def notes(policies: PolicySet, outcomes: Sequence[MutationResult]) -> list[str]:
    """Returns the lines for standard error that concern all objects: the skipped policies, and the audit
    annotations of policies.
    """
    audited = dict.fromkeys(
        text
        for outcome in outcomes
        if outcome.decision.findings is not None
        for text in (outcome.decision.findings.audit_annotations or {}).values()
    )
    return [*filter(None, [_left_out(policies, outcomes)]), *(f"Note: {text}" for text in audited)]


def _left_out(policies: PolicySet, outcomes: Sequence[MutationResult]) -> str:
    """Returns a line on the policies that were skipped because they need a cluster; "" if there are none."""
    skipped = {
        row.policy: row
        for outcome in outcomes
        for part in (outcome.decision.mutated, outcome.decision.findings)
        for row in (part.skipped if part is not None else ())
    }
    notice = skipped_notice(policies.policies, list(skipped.values()))
    return f"{notice} (give a cluster with -c)" if notice else ""


def _name(namespace: str, obj: dict[str, Any]) -> str:
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name") or metadata.get("generateName") or "(no name)"
    return printable_name("/".join(str(part) for part in (namespace, obj["kind"], name) if part))


def _yaml(outcomes: Sequence[MutationResult]) -> str:
    return "---\n".join(as_yaml(outcome.decision.object) for outcome in outcomes)


def _json(outcomes: Sequence[MutationResult]) -> str:
    objects = [outcome.decision.object for outcome in outcomes]
    value = objects[0] if len(objects) == 1 else as_list(objects)
    return indented(value) if objects else ""


def _patch(outcomes: Sequence[MutationResult]) -> str:
    """Returns the JSON Patch of the object; if there are several objects, the list of their patches in
    order.
    """
    patches = [list(outcome.decision.response.patch) for outcome in outcomes]
    return indented(patches[0] if len(patches) == 1 else patches) if patches else ""


def _diff(outcomes: Sequence[MutationResult]) -> str:
    return "".join(line for outcome in outcomes for line in difference(outcome))


def difference(outcome: MutationResult) -> Iterator[str]:
    """Yields a unified diff between the object in the manifest and the object that would be stored."""
    name = f"{outcome.document.file} {outcome.name}"
    return difflib.unified_diff(
        as_yaml(outcome.document.value).splitlines(keepends=True),
        as_yaml(outcome.decision.object).splitlines(keepends=True),
        name,
        f"{name} (as it would be stored)",
    )


_FORMATS = {"yaml": _yaml, "json": _json, "patch": _patch, "diff": _diff}
