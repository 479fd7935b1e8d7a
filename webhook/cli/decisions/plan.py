"""`bayplan plan`: plans the gangs in manifests, each after the reservations of the gangs before it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.errors import Where
from planner.model.names import gangs_listed, namespace_of
from planner.model.podgroup import PodGroup
from webhook.admission.environment import Environment, namespaces, pod_groups
from webhook.admission.modes import mode_in_force
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, subcommand
from webhook.cli.decisions.plan_output import PlannedGang, show
from webhook.files.reader import Document
from webhook.placement.planning import plan_workload
from webhook.policy.model.policy import PolicySet
from webhook.report.documents import document as as_text
from webhook.report.printable import printable_name
from webhook.workloads import Workload, joined, read, wants_plan
from webhook.workloads.keys.annotation_keys import SKIP
from webhook.workloads.options import RESERVE_MODES
from webhook.workloads.unread_kinds import handling, unread_pods

EPILOG = """examples:
  kubectl get nodes,pods,topologies.kai.scheduler -A -o yaml > cluster.yaml
  bayplan plan -c cluster.yaml -f job.yaml
  bayplan plan -c cluster.yaml -f gangs/ --reserve nodes -o json
  bayplan plan -c cluster.yaml -f job.yaml --explain

The manifests are planned as they are. The webhook plans what policies make of them, such as pods with more
CPU and memory: `bayplan mutate -c` and `bayplan report -c` show that.

Gangs in namespaces that are not enforced (by the label bayplan.dev/mode, or by --mode) are also planned, with
a note on standard error.

exit status: 0 all gangs admitted, 1 a gang queued or rejected, 2 bad input or usage
"""


PodGroups = Mapping[tuple[str, str], Mapping[str, object]]


def add_parser(subparsers: Subparsers) -> None:
    """Adds `plan`."""
    parser = subcommand(
        subparsers,
        "plan",
        description="Plan the gangs in manifests on a cluster, in the order of the manifests.",
        epilog=EPILOG,
    )
    inputs.add_cluster(parser, required=True)
    inputs.add_manifests(parser)
    inputs.add_mode(parser)
    parser.add_argument(
        "--reserve",
        choices=RESERVE_MODES,
        help="what a placed gang reserves (default: the manifest's annotation, else auto)",
    )
    parser.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table")
    parser.add_argument(
        "--explain", action="store_true", help="show the search: what fits at each topology level"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plans the gangs and prints the answers. Returns 1 unless all gangs are admitted. Raises `InputError`
    for invalid input.
    """
    snapshot, environment = inputs.cluster_and_environment(args)
    assert snapshot is not None, "argparse requires -c"
    environment = inputs.in_force(environment, PolicySet())
    snapshot = environment.settings("").of(snapshot)
    documents = inputs.without_duplicates(inputs.manifests(args.filename))
    planned_gangs: list[PlannedGang] = []
    entries: list[dict[str, object]] = []
    with_claims = inputs.with_claims_of(snapshot, documents)
    for planned in plan_each(with_claims, documents, args.reserve, environment):
        planned_gangs.append(planned)
        if args.output != "table":
            entries.append(planned.to_json())
    lines = (
        *_unplanned(documents),
        *_not_by_webhook(planned_gangs),
        *_unenforced(planned_gangs, documents, environment),
    )
    for line in lines:
        inputs.note(line)
    if args.output == "table":
        show(planned_gangs, explain=args.explain)
    else:
        sys.stdout.write(as_text(args.output, {"gangs": entries}))
    return 0 if all(planned.answer.decision == "admitted" for planned in planned_gangs) else 1


def _unplanned(documents: Iterable[Document]) -> Iterator[str]:
    """Yields a line for each object that creates pods and has no plan of its own."""
    for document in documents:
        if unread_pods(document.value):
            metadata = document.value.get("metadata")
            metadata = metadata if isinstance(metadata, Mapping) else {}
            name = metadata.get("name") or metadata.get("generateName") or "(no name)"
            yield printable_name(f"{document.file}: {name}: {handling(document.value)}")


def _not_by_webhook(planned_gangs: Iterable[PlannedGang]) -> Iterator[str]:
    """Yields a line for each reason for which the webhook would not plan some of these gangs."""
    by_reason: dict[str, list[str]] = {}
    for planned in planned_gangs:
        if planned.not_by_webhook:
            by_reason.setdefault(planned.not_by_webhook, []).append(planned.answer.gang)
    for reason, gangs in by_reason.items():
        yield f"Note: the webhook does not plan {gangs_listed(gangs)}: {reason}"


def _why_not_by_webhook(workload: Workload) -> str:
    """Returns why the webhook would not plan the object, "" if it would."""
    if wants_plan(workload):
        return ""
    if workload.skip:
        return f"{SKIP} is set, or Bayplan ignores such pods"
    return "no GPU is requested, and no topology key and no key of Bayplan is set"


def _unenforced(
    planned_gangs: Iterable[PlannedGang], documents: Iterable[Document], environment: Environment
) -> Iterator[str]:
    """Yields a line for each namespace of a gang whose mode is not `enforce`, and for each invalid mode
    label.
    """
    by_name = {**environment.namespaces, **namespaces(document.value for document in documents)}
    for name in dict.fromkeys(namespace_of(planned.answer.gang) for planned in planned_gangs):
        force = mode_in_force(by_name.get(name), environment.settings(name))
        if force.warning:
            yield f"Warning: {force.warning}"
        if not force.enforces:
            yield f"namespace {name} has mode {force.mode}: nothing is held, queued or refused there"


def plan_each(
    snapshot: Snapshot, documents: list[Document], reserve: str | None, environment: Environment
) -> Iterator[PlannedGang]:
    """Plans each gang in the documents, on the cluster with the reservations of the gangs before it.

    Yields each gang with its answer and the cluster on which it was planned. A caller that wants the numbers
    behind thousands of answers asks for them at once (`PlannedGang.account`): the free capacity of the next
    cluster then differs from a known one by one gang, not by all gangs since the first. `reserve`: what every
    gang reserves; None for what its own annotation says, or else the default of its namespace. Raises
    `InputError` for a malformed workload.
    """
    podgroups = {**environment.podgroups, **pod_groups(document.value for document in documents)}
    planned: set[str] = set()
    read_in = (_workload(index, document, podgroups) for index, document in enumerate(documents))
    for workload in joined(read_in):
        groups = tuple(
            _reserving(group, reserve, environment) for group in workload.gangs if group.name not in planned
        )
        if not workload.suspended:  # else other workloads of the same gang would not be planned
            planned.update(group.name for group in groups)
        reason = _why_not_by_webhook(workload)
        plan = plan_workload(snapshot, replace(workload, gangs=groups, holds=not workload.suspended))
        for placed in plan.placed:
            answer = _as_preview(placed.answer) if workload.suspended else placed.answer
            yield PlannedGang(answer, placed.group, snapshot, plan.total, reason)
            if placed.reservation is not None:
                snapshot = snapshot.with_reservation(placed.reservation)


def _as_preview(answer: Answer) -> Answer:
    words = "is suspended, and holds nothing until it is resumed: this is what it would get now"
    return replace(answer, warnings=(*answer.warnings, words))


def _workload(place: int, document: Document, podgroups: PodGroups) -> Workload:
    return read(document.value, where=Where(document.file), podgroups=podgroups, request_uid=str(place))


def _reserving(group: PodGroup, reserve: str | None, environment: Environment) -> PodGroup:
    group = environment.settings(namespace_of(group.name)).reserve.of(group)
    if not reserve:
        return group
    return replace(group, reserve=reserve, reserve_is_default=False)  # type: ignore[arg-type]
