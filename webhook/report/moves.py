"""Formats the moves of a defragmentation: maps before and after, the moves, and figures. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from planner.cluster.census.domains import Count, census
from planner.model.topology import HOSTNAME, short
from planner.model.words import counted, listed
from planner.planning.defragmentation.limits import HOUR
from planner.planning.defragmentation.movable import Relocation
from planner.planning.defragmentation.result import Defragmentation, NoMoves
from webhook.report import terminal
from webhook.report.fabric_map import fabric_map
from webhook.report.fabric_text import drawn
from webhook.report.printable import printable

_NODES = 4
"""The maximum number of nodes that are named for each side of a move; the JSON output has all."""


def lines(result: Defragmentation, width: int) -> Iterator[Text | Table]:
    """Yields the tables and lines that show the moves, of at most `width` columns."""
    if not result.moves:
        yield Text(f"{aim(result)} now; nothing needs to move")
        return
    for title, snapshot in (("before", result.before), ("after", result.after)):
        yield Text(title, "bold")
        yield from drawn(fabric_map(snapshot, result.topology), width)
        yield Text("")
    columns = ("move", "pods", "GPUs", "priority", "runs for", "from", "to")
    yield terminal.table(columns, [_row(move) for move in result.moves])
    yield Text("")
    rows = [(words, str(before), str(after)) for words, before, after in figures(result)]
    yield terminal.table(("", "before", "after"), rows)
    yield Text("")
    yield Text(terminal.folded(_summary(result), "", width))


def figures(result: Defragmentation) -> list[tuple[str, int, int]]:
    """Returns rows of a name and two numbers, before and after the moves: the number of free domains of each
    level, and that of partly used nodes.
    """
    counts = [census(snapshot, result.topology.name) for snapshot in (result.before, result.after)]
    rows: list[tuple[str, int, int]] = []
    for level in result.topology.levels:
        before, after = (sum(map(_is_free, _of_level(count, level))) for count in counts)
        rows.append((f"whole {short(level)}s free", before, after))
    before, after = (sum(map(_is_partly_used, _of_level(count, HOSTNAME))) for count in counts)
    return [*rows, ("nodes partly in use", before, after)]


def figures_json(result: Defragmentation) -> list[dict[str, object]]:
    """Returns `figures` for JSON: dictionaries with the keys `figure`, `before` and `after`."""
    return [{"figure": words, "before": before, "after": after} for words, before, after in figures(result)]


def refusal(refused: NoMoves, width: int) -> Iterator[Text]:
    """Yields why there are no moves, and for each domain why it cannot be freed."""
    yield Text(terminal.folded(f"{refused.reason}: {refused.message}", "", width))
    for domain, why in refused.kept.items():
        yield Text(terminal.folded(f"{_path(domain)}: {printable(why)}", "  ", width))


def aim(result: Defragmentation) -> str:
    """Returns what the moves achieve, as a sentence without a full stop: the gang has its place, or the
    domains are free.
    """
    names = ", ".join(_path(domain) for domain in result.domains)
    if result.gang is not None:
        return f"{printable(result.gang.gang)} has its place in {names}"
    return f"{names} {'is' if len(result.domains) == 1 else 'are'} free"


def _summary(result: Defragmentation) -> str:
    pods = sum(len(move.movable.pods) for move in result.moves)
    hours = result.cost.lost / HOUR
    moves = counted(len(result.moves), "move")
    restarts = f"{counted(pods, 'pod')} of {moves} restart{'s' if pods == 1 else ''}"
    sure = (
        "no cheaper moves reach this" if result.exact else "cheaper moves may exist: the search ended early"
    )
    lost = f", {hours:.1f} GPU hours since they started" if result.cost.lost else ""
    return f"afterwards {aim(result)}; {restarts}{lost}; {sure}"


def _row(move: Relocation) -> tuple[str, ...]:
    movable = move.movable
    return (
        printable(movable.name),
        str(len(movable.pods)),
        str(movable.group.gpus),
        str(movable.priority),
        f"{movable.age / HOUR:.1f} h" if movable.age else "",
        listed(sorted(movable.nodes), _NODES),
        listed(sorted({part.node for part in move.to}), _NODES),
    )


def _is_free(count: Count) -> bool:
    """Reports whether a domain is unused and wholly usable. Unnamed domains (without labels) do not count."""
    return count.pristine and not count.unusable and all(count.path)


def _of_level(count: Count, level: str) -> Iterator[Count]:
    if count.level == level:
        yield count
    for domain in count.domains:
        yield from _of_level(domain, level)


def _is_partly_used(host: Count) -> bool:
    return 0 < host.free < host.gpus


def _path(domain: tuple[str, ...]) -> str:
    return printable("/".join(filter(None, domain))) or "the whole cluster"
