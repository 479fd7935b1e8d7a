"""Prints the demo: the outcome of each example in a few lines, and the racks with their gangs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonpointer
import orjson
from rich.console import Console
from rich.text import Text

from planner.cluster.snapshot import Snapshot
from webhook.admission.decision_record import PLAN
from webhook.admission.response import CHANGED
from webhook.cli.demo.apiserver import Reply
from webhook.report import terminal
from webhook.report.fabric_map import fabric_maps
from webhook.report.fabric_text import drawn
from webhook.report.printable import printable
from webhook.workloads.keys.annotation_keys import PLACEMENT

_INDENT = " " * 12
"""The indent of text after a label: the longest label, `admitted`, and two spaces on either side."""


def heading(console: Console, file: str, text: str, number: int = 0) -> None:
    """Prints the name of an example, with its number in the story (0 for none) and its explanation."""
    console.print(Text(f"\n{f'{number}  ' if number else ''}{file}", "bold"))
    console.print(terminal.folded(text, "  ", terminal.width(console)), style="dim")


def outcome(console: Console, reply: Reply, *, every: bool) -> None:
    """Prints the outcome of an example, and the reason. `every`: also prints each changed field with its
    value.
    """
    warnings = _unbroken(reply.response.get("warnings", ()))
    queued = [warning for warning in warnings if " is queued: " in warning]
    if not reply.allowed:
        _say(console, "refused", "red", reply.message)
    elif queued:
        _say(console, "queued", "yellow", queued[0])
    else:
        _say(console, "admitted", "green", _placement(reply.object))
    for warning in warnings:
        if warning not in queued:
            _say(console, "warning", "yellow", warning)
    if every:
        _fields(console, reply)
    elif reply.allowed and not queued:
        _say(console, "written", "cyan", f"by {', '.join(_by_policy(reply))}")
    if not reply.same_as_dry_run:
        _say(console, "differs", "red", "the dry run answered otherwise")


def _say(console: Console, label: str, colour: str, text: str) -> None:
    """Prints a label, and the text to the right of it."""
    folded = terminal.folded(printable(text), _INDENT, terminal.width(console))
    console.print(Text.assemble((f"  {label:<10}", colour), folded[len(_INDENT) :]))


def _unbroken(warnings: Iterable[str]) -> list[str]:
    """Returns whole warnings: the webhook splits each warning into short lines for kubectl, and every line
    begins with the object's name.
    """
    whole: list[str] = []
    for line in warnings:
        about, _, sentence = line.partition(": ")
        if (
            whole
            and about.count("/") > 1
            and " " not in about
            and whole[-1].startswith((about + ":", about + " "))
        ):
            whole[-1] += f" {sentence}"
        else:
            whole.append(line)
    return whole


def _placement(obj: Mapping[str, Any]) -> str:
    """Returns a sentence on where an admitted object's pods are placed, and what its gang reserves."""
    note = obj["metadata"].get("annotations", {}).get(PLACEMENT)
    if note is None:
        return "nothing to plan"
    plan = orjson.loads(note)
    shared = "what it uses" if plan.get("nodes") else "nothing"
    held = ", ".join(_path(domain) for domain in plan["reserves"]) or shared
    return f"placed in {_path(plan['domain']) or 'several domains'}; holds {held}"


def _path(domain: Iterable[str]) -> str:
    return "/".join(part for part in domain if part)


def _changes(reply: Reply) -> dict[str, list[str]]:
    """Returns JSON pointers to the changed fields, by the policy that changed them."""
    changed = orjson.loads(reply.response.get("auditAnnotations", {}).get(CHANGED, "{}"))
    return {policy: pointers for policy, pointers in changed.items() if policy != PLAN}


def _by_policy(reply: Reply) -> Iterator[str]:
    """Yields the name of each policy that changed the object, with the number of changed fields if there are
    several.
    """
    for policy, pointers in _changes(reply).items():
        yield f"{policy} ({len(pointers)} fields)" if len(pointers) > 1 else policy


def _fields(console: Console, reply: Reply) -> None:
    """Prints each field that policies changed, with its value."""
    for policy, pointers in _changes(reply).items():
        console.print(Text(f"  {policy}", "cyan"))
        for pointer in pointers:
            value = jsonpointer.resolve_pointer(reply.object, pointer, None)
            words = f"{_field(pointer)} = {json.dumps(value)}"  # lines are folded at the spaces of the JSON
            console.print(terminal.folded(printable(words), "    ", terminal.width(console)))


def _field(pointer: str) -> str:
    """Returns a JSON pointer as a field path: `/spec/template/0/name` becomes spec.template[0].name."""
    field = ""
    for part in jsonpointer.JsonPointer(pointer).parts:
        field += f"[{part}]" if part.isdecimal() else f".{part}" if field else part
    return field


def fabric(console: Console, title: str, snapshot: Snapshot) -> None:
    """Prints a title, and the map of each topology with its gangs."""
    console.print(f"\n{title}")
    for topology in fabric_maps(snapshot):
        for line in drawn(topology, terminal.width(console)):
            console.print(line)
