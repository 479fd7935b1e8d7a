"""What a person sees of the demo: each gang's story in a few lines, and the racks with their holders."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jsonpointer
import orjson
from rich.console import Console
from rich.markup import escape

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Reservation
from planner.model.words import shortened
from webhook.admission.decision import PLAN
from webhook.admission.response import CHANGED
from webhook.cli.demo.apiserver import Reply
from webhook.workloads.annotation_keys import PLACEMENT, QUEUED_GATE

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


LINES_PER_POLICY = 4


WIDTH = 96


COLUMN = 22


def story(console: Console, name: str, first_line: str, reply: Reply) -> None:
    """One example: what was asked, what became of it, and why."""
    console.print(f"\n[bold]{escape(name)}[/]")
    _say(console, "[dim]#[/]", 1, first_line, "dim")
    if not reply.allowed:
        _say(console, "[red]refused[/]", 7, reply.message)
    else:
        _placement(console, reply.object)
        _injected(console, reply)
    warnings = _unbroken(reply.response.get("warnings", ()))
    for warning in warnings:
        _say(console, "[yellow]warning[/]", 7, warning)
    if not reply.same_as_dry_run:
        console.print("  [red]the dry run answered otherwise[/]")


def _say(console: Console, label: str, size: int, text: str, style: str = "") -> None:
    """A label of `size` visible characters, and the text beside it, wrapped."""
    indent = " " * (COLUMN + 2)
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
    console.print(f"  {label}{' ' * (COLUMN - size)}" + f"\n{indent}".join(map(escape, lines)), style=style)


def _unbroken(warnings: Iterable[str]) -> list[str]:
    """Warnings as they were before they were cut into lines for kubectl."""
    whole: list[str] = []
    for line in warnings:
        if line.startswith("  ") and whole:
            whole[-1] += line[1:]
        else:
            whole.append(line)
    return whole


def _placement(console: Console, obj: Mapping[str, Any]) -> None:
    note = obj["metadata"].get("annotations", {}).get(PLACEMENT)
    if note is None:
        _say(console, "[green]admitted[/]", 8, "nothing to plan")
        return
    plan = orjson.loads(note)
    if plan["decision"] == "queued":
        _say(console, "[yellow]queued[/]", 6, f"its pods wait behind the scheduling gate {QUEUED_GATE}")
        return
    shared = "what it uses" if plan.get("nodes") else "nothing"
    held = ", ".join(_path(domain) for domain in plan["reserves"]) or shared
    place = _path(plan["domain"]) or "several domains"
    _say(console, "[green]admitted[/]", 8, f"placed in {place}; holds {held}")


def _path(domain: Iterable[str]) -> str:
    return "/".join(part for part in domain if part)


def _injected(console: Console, reply: Reply) -> None:
    changed = orjson.loads(reply.response.get("auditAnnotations", {}).get(CHANGED, "{}"))
    for policy, pointers in changed.items():
        if policy == PLAN:
            continue
        for pointer in pointers[:LINES_PER_POLICY]:
            value = jsonpointer.resolve_pointer(reply.object, pointer, None)
            line = f"{_field(pointer)} = {orjson.dumps(value).decode()}"
            console.print(f"  [cyan]{escape(policy):<{COLUMN}}[/]{escape(shortened(line, WIDTH))}")
        if len(pointers) > LINES_PER_POLICY:
            console.print(f"  {'':<{COLUMN}}[dim]… and {len(pointers) - LINES_PER_POLICY} more fields[/]")


def _field(pointer: str) -> str:
    """`/spec/template/0/name` as people write it: spec.template[0].name."""
    field = ""
    for part in jsonpointer.JsonPointer(pointer).parts:
        field += f"[{part}]" if part.isdecimal() else f".{part}" if field else part
    return field


def fabric(console: Console, snapshot: Snapshot, held: Sequence[Reservation]) -> None:
    """The racks as rows of nodes: a letter is a holder, upper case where its pods run; `#` is used by
    others, `.` is free, `-` takes no pods."""
    letters = {reservation.gang: LETTERS[index % len(LETTERS)] for index, reservation in enumerate(held)}
    used = frozenset(pod.node for pod in snapshot.pods)
    for topology in snapshot.topologies:
        rows: dict[tuple[str, ...], list[str]] = {}
        for node in snapshot.base.trees[topology.name].nodes:
            path = topology.path(node.name, node.labels)
            rows.setdefault(path[:-1], []).append(_cell(node.name, node.cordoned, held, letters, used))
        console.print(f"  [bold]{escape(topology.title)}[/]")
        for path, cells in rows.items():
            console.print(f"    {escape(_path(path)):<28} {' '.join(cells)}", soft_wrap=True)
    for gang, letter in letters.items():
        console.print(f"    [cyan]{letter}[/] {escape(gang)}")
    console.print("    [dim]A: a gang's pods, a: held for it, #: in use by others, .: free, -: cordoned[/]")


def _cell(
    node: str, cordoned: bool, held: Sequence[Reservation], letters: Mapping[str, str], used: frozenset[str]
) -> str:
    for reservation in held:
        if any(assignment.node == node for assignment in reservation.assignments):
            return f"[bold cyan]{letters[reservation.gang]}[/]"
        if node in reservation.nodes:
            return f"[cyan]{letters[reservation.gang].lower()}[/]"
    return "-" if cordoned else "#" if node in used else "."
