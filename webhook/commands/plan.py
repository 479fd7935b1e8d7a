"""`bayplan plan`: where each gang would go, each seeing the former ones' reservations."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace

import orjson
import yaml
from rich.console import Console
from rich.text import Text

from planner.answer import Answer
from planner.errors import Where
from planner.explain import some
from planner.podgroup import PodGroup
from planner.ranks import ranks, runs
from planner.snapshot import Snapshot
from planner.topology import Domain
from webhook.commands import inputs
from webhook.files import Document
from webhook.planning import plan_workload
from webhook.surroundings import pod_groups
from webhook.terminal import console, table
from webhook.workloads import Workload, joined, read

EPILOG = """examples:
  kubectl get nodes,pods,topologies.kai.scheduler -A -o yaml > cluster.yaml
  bayplan plan -c cluster.yaml -f job.yaml
  bayplan plan -c cluster.yaml -f gangs/ --reserve nodes -o json
  bayplan plan -c cluster.yaml -f job.yaml --explain

exit status: 0 every gang admitted, 1 some gang queued or rejected, 2 bad input or usage
"""
PodGroups = Mapping[tuple[str, str], Mapping[str, object]]
_NO_PODGROUPS: PodGroups = {}
_COLOURS = {"admitted": "green", "queued": "yellow", "rejected": "red"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `plan`."""
    parser = subparsers.add_parser(
        "plan",
        help="where each gang would go, and why",
        description="Plan the gangs in manifests on a cluster, in the order in which they stand.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inputs.add_cluster(parser, required=True)
    inputs.add_manifests(parser)
    parser.add_argument(
        "--reserve",
        choices=("domain", "nodes", "none"),
        help="what a placed gang holds (default: what the manifest says, else the whole domain)",
    )
    parser.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table")
    parser.add_argument(
        "--explain", action="store_true", help="show the search: each level and what fits there"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plan and print. Raises `InputError` for bad input."""
    snapshot, around = inputs.cluster_and_surroundings(args.cluster)
    assert snapshot is not None, "argparse demands -c"
    answers = plan_all(snapshot, inputs.once(inputs.manifests(args.filename)), args.reserve, around.podgroups)
    if args.output == "table":
        _table(answers, args.explain)
    else:
        document = {"gangs": [answer.to_json() for answer in answers]}
        sys.stdout.write(
            orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"
            if args.output == "json"
            else yaml.safe_dump(document, sort_keys=False)
        )
    return 0 if all(answer.decision == "admitted" for answer in answers) else 1


def plan_all(
    snapshot: Snapshot, documents: list[Document], reserve: str | None, podgroups: PodGroups = _NO_PODGROUPS
) -> list[Answer]:
    """The answers for every gang in the documents. Raises `InputError` for a malformed workload."""
    answers: list[Answer] = []
    podgroups = {**podgroups, **pod_groups(document.value for document in documents)}
    planned: set[str] = set()
    read_in = (_workload(place, document, podgroups) for place, document in enumerate(documents))
    for workload in joined(read_in):
        groups = tuple(_reserving(group, reserve) for group in workload.gangs if group.name not in planned)
        planned.update(group.name for group in groups)
        plan = plan_workload(snapshot, replace(workload, gangs=groups, holds=True))
        snapshot = plan.snapshot
        answers.extend(placed.answer for placed in plan.placed)
    return answers


def _workload(place: int, document: Document, podgroups: PodGroups) -> Workload:
    return read(document.value, where=Where(document.file), podgroups=podgroups, request_uid=str(place))


def _reserving(group: PodGroup, reserve: str | None) -> PodGroup:
    return replace(group, reserve=reserve) if reserve else group  # type: ignore[arg-type]


def _table(answers: list[Answer], explain: bool) -> None:
    out = console()
    if not answers:
        out.print("no gang in these manifests asks for anything that can be planned")
        return
    rows = [
        (
            answer.gang,
            Text(answer.decision, _COLOURS[answer.decision]),
            _path(answer.domain) or (f"(all of {answer.topology})" if answer.assignments else "–"),
            ", ".join(map(_path, answer.reserves)) or "–",
            _pods(answer),
        )
        for answer in answers
    ]
    out.print(table(("gang", "decision", "domain", "reserves", "pods"), rows))
    for answer in answers:
        if answer.decision != "admitted" or answer.warnings or explain:
            out.print(f"\n{answer.gang}: {answer.reason}\n  {answer.message}")
        for warning in answer.warnings:
            out.print(f"  warning: {warning}")
        if explain:
            _explain(out, answer)


def _path(domain: Domain) -> str:
    return "/".join(part for part in domain if part)


def _pods(answer: Answer) -> str:
    return ", ".join(f"{a.count}×{a.pod_set} on {a.node}" for a in answer.assignments[:4]) + (
        f", … ({len(answer.assignments)} nodes)" if len(answer.assignments) > 4 else ""
    )


def _explain(out: Console, answer: Answer) -> None:
    for depth, attempt in enumerate(answer.attempts):
        place = _path(attempt.domain) or "(everything)"
        note = f" – {attempt.note}" if attempt.note else ""
        level = attempt.level or "whole topology"
        fits = f"{attempt.fits} of {attempt.wanted} pods fit"
        out.print(f"  {'  ' * depth}└ {level}: best {place}, {fits}{note}")
    for cause, count in sorted(answer.obstacles.items(), key=lambda item: (-item[1], item[0])):
        out.print(f"  {count} node{'s' if count != 1 else ''} left out: {cause}")
    for pod_set in dict.fromkeys(assignment.pod_set for assignment in answer.assignments):
        laid = [f"{_span(first, last)} on {node}" for first, last, node in runs(ranks(answer, pod_set))]
        out.print(f"  ranks of {pod_set}: {some(laid)}")


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"
