"""Draws the map of a topology as text: a row for each rack, a character for each node. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from planner.cluster.census.domains import Count
from planner.model.words import counted, shortened
from webhook.report.fabric_map import FabricMap, MapRow, NodeCell, NodeState
from webhook.report.printable import printable
from webhook.report.terminal import folded

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZΓΔΘΛΞΠΣΦΨΩ"
"""The letters of gangs: upper case for nodes with pods of the gang, lower case for nodes that the gang
only holds. Greek letters that look like Latin ones are left out.
"""
_FURTHER_GANG = "@"
"""The sign of all gangs beyond the number of letters."""
_SIGNS: Mapping[NodeState, str] = {"full": "#", "partly": "+", "free": ".", "unusable": "-"}
_WORDS: Mapping[NodeState, str] = {
    "placed": "A: a gang's pods",
    "held": "a: held for it",
    "full": "#: full",
    "partly": "+: partly in use",
    "free": ".: free",
    "unusable": "-: cordoned or not ready",
}
_STYLES: Mapping[NodeState, str] = {"placed": "bold cyan", "held": "cyan", "unusable": "dim", "free": "green"}
_TITLE = 30
"""The maximum width of a row's title in columns. Names of NVLink domains contain UUIDs, which would leave too
little space for the nodes.
"""
_FEWEST_NODES = 8
"""The minimum number of nodes in a line, even on a narrow terminal."""


def drawn(fabric: FabricMap, width: int, *, nodes: bool = False) -> Iterator[Text]:
    """Yields the lines of the map, at most `width` columns wide: totals, racks, gangs and the legend.

    `nodes`: also yields a line for each node, below its rack.
    """
    letters = letters_of(fabric.gangs)
    yield Text(f"{fabric.title}  {_totals(fabric.count)}", "bold")
    layout = _Layout(fabric.rows, width)
    for row in fabric.rows:
        yield from layout.lines(row, letters)
        if nodes:
            yield from (_node(cell, row, letters) for cell in row.cells)
    yield from _gangs(letters, width)
    states = {cell.state for row in fabric.rows for cell in row.cells}
    legend = "  ".join(words for state, words in _WORDS.items() if state in states)
    yield Text(folded(legend, "  ", width), "dim")


def letters_of(gangs: Sequence[str]) -> dict[str, str]:
    """Returns a letter for each gang, in the order of the gangs; "@" for all gangs beyond the letters."""
    return {gang: LETTERS[i] if i < len(LETTERS) else _FURTHER_GANG for i, gang in enumerate(gangs)}


class _Layout:
    """The widths of the three columns: titles, nodes and free GPUs."""

    def __init__(self, rows: Sequence[MapRow], width: int) -> None:
        indented = (2 * row.depth + len(row.title) for row in rows)
        self._titles = min(_TITLE, max(indented, default=0))
        self._numbers = max((len(_free(row.count)) for row in rows), default=0)
        room = max(_FEWEST_NODES, width - 2 - self._titles - 2 - 2 - self._numbers)
        widest = max((len(row.cells) for row in rows), default=0)
        self._between = " " if 2 * widest - 1 <= room else ""
        self._per_line = min(widest, room)
        self._nodes = max(0, self._per_line * (1 + len(self._between)) - len(self._between))

    def lines(self, row: MapRow, letters: Mapping[str, str]) -> Iterator[Text]:
        style = "" if row.count.free else "dim"
        title = shortened("  " * row.depth + row.title, self._titles)
        line = Text(f"  {title:<{self._titles}}  ", style)
        free = Text(f"  {_free(row.count):>{self._numbers}}", style)
        margin = len(line)
        if not row.cells:
            yield line.append(" " * self._nodes).append_text(free)
        for start in range(0, len(row.cells), self._per_line):
            signs = [_sign(cell, letters) for cell in row.cells[start : start + self._per_line]]
            line.append_text(Text(self._between).join(signs))
            if not start:
                line.append(" " * (margin + self._nodes - len(line))).append_text(free)
            yield line
            line = Text(" " * margin)


def _sign(cell: NodeCell, letters: Mapping[str, str]) -> Text:
    letter = letters.get(cell.gang, "")
    sign = (letter if cell.state == "placed" else letter.lower()) if letter else _SIGNS[cell.state]
    return Text(sign, _STYLES.get(cell.state, ""))


def _node(cell: NodeCell, row: MapRow, letters: Mapping[str, str]) -> Text:
    indent = "  " * (row.depth + 2)
    return (
        Text(indent).append_text(_sign(cell, letters)).append(f" {printable(cell.node)}  {_free(cell.count)}")
    )


def _gangs(letters: Mapping[str, str], width: int) -> Iterator[Text]:
    """Yields a line with letter and name for each gang, and a line that counts the gangs without a letter."""
    lettered = [(letter, gang) for gang, letter in letters.items() if letter != _FURTHER_GANG]
    for letter, gang in lettered:
        yield Text(f"  {letter} ", "cyan").append(folded(printable(gang), "    ", width)[4:], "not cyan")
    if further := len(letters) - len(lettered):
        yield Text(f"  {_FURTHER_GANG} {further} further gangs")


def _totals(count: Count) -> str:
    words = [counted(count.nodes, "node"), _free(count)]
    if count.unusable:
        words.append(f"{count.unusable} cordoned or not ready")
    return ", ".join(words)


def _free(count: Count) -> str:
    return f"{count.free} of {count.gpus} GPUs free" if count.gpus else "no whole GPUs"
