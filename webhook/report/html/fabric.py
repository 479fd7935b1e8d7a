"""Draws the racks of a cluster as HTML: a square for each node, with the letter of its gang."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from html import escape

from planner.cluster.census.domains import Count
from planner.model.words import counted, listed
from webhook.report.fabric_map import FabricMap, MapRow, NodeCell, NodeState
from webhook.report.fabric_text import letters_of
from webhook.report.printable import printable

OWN = {"placed": "●", "held": "○"}
"""The signs of nodes of an object's own gangs, by state, in the drawing of the object's racks."""
_SIGNS: Mapping[NodeState, str] = {"partly": "+", "unusable": "–"}
_WORDS: Mapping[NodeState, str] = {
    "placed": "a gang's pods",
    "held": "held for it",
    "full": "full",
    "partly": "partly in use",
    "free": "free",
    "unusable": "cordoned or not ready",
}
_MOST_TOLD = 4
"""The maximum number of entries in the description of a rack; the squares show all nodes."""


def section(fabric: FabricMap, words: str, targets: Mapping[str, str]) -> str:
    """Returns the section with a map.

    `words`: text that says which state of the cluster the map shows. `targets`: by gang, the HTML id of its
    object's section, for links.
    """
    letters = letters_of(fabric.gangs)
    rows = "".join(_row(row, letters) for row in fabric.rows)
    states = {cell.state for row in fabric.rows for cell in row.cells}
    count = fabric.count
    unusable = f", {count.unusable} cordoned or not ready" if count.unusable else ""
    return (
        f'<section class="card">\n<h2>{escape(printable(fabric.title))}</h2>\n'
        f'<p class="quiet">{escape(words)}: {_nodes(count)}, {_free(count)}{unusable}.</p>\n'
        f"{rows}{_gangs(letters, targets)}{_legend(states)}</section>\n"
    )


def racks(rows: Iterable[MapRow], gangs: Iterable[str]) -> str:
    """Returns the HTML of the racks that an object's gangs use (`rows`), with a sign (`OWN`) on the nodes of
    these gangs; "" if there are no racks.
    """
    own = frozenset(gangs)
    drawn = "".join(_own_row(row, own) for row in rows)
    return f"<div>\n{drawn}</div>\n" if drawn else ""


def _row(row: MapRow, letters: Mapping[str, str]) -> str:
    if not row.cells:
        free = f'<span class="free">{_free(row.count)}</span>'
        return f'<div class="rack level">{_title(row)}<span></span>{free}</div>\n'
    squares = "".join(_square(cell, _letter(cell, letters)) for cell in row.cells)
    return _rack(row, squares, _words(row), _free(row.count))


def _own_row(row: MapRow, own: frozenset[str]) -> str:
    def sign(cell: NodeCell) -> str:
        return OWN[cell.state] if cell.gang in own else _SIGNS.get(cell.state, "")

    mine = sum(cell.gang in own for cell in row.cells)
    squares = "".join(_square(cell, sign(cell)) for cell in row.cells)
    return _rack(row, squares, _words(row), f"{mine} of {_nodes(row.count)}")


def _rack(row: MapRow, squares: str, sentence: str, number: str) -> str:
    """Returns the row of a rack: squares for sighted users, and a sentence for screen readers."""
    return (
        f'<div class="rack">{_title(row)}<span class="said">{escape(sentence)}</span>'
        f'<span class="nodes" aria-hidden="true">{squares}</span><span class="free">{number}</span></div>\n'
    )


def _title(row: MapRow) -> str:
    """Returns the row's name, with the full name as tooltip: CSS truncates long names (NVLink domains are
    UUIDs).
    """
    name = escape(printable(row.title))
    return f'<span class="title" title="{name}">{name}</span>'


def _square(cell: NodeCell, sign: str) -> str:
    who = f", {cell.gang}" if cell.gang else ""
    words = escape(printable(f"{cell.node}: {_WORDS[cell.state]}{who}"))
    return f'<i class="{cell.state}" title="{words}">{sign}</i>'


def _letter(cell: NodeCell, letters: Mapping[str, str]) -> str:
    letter = letters.get(cell.gang, "")
    if not letter:
        return _SIGNS.get(cell.state, "")
    return letter if cell.state == "placed" else letter.lower()


def _words(row: MapRow) -> str:
    """Returns a description of the squares: the number of nodes of each gang, and of other nodes in each
    state.
    """
    gangs = Counter((cell.gang, cell.state) for cell in row.cells if cell.gang)
    states = Counter(cell.state for cell in row.cells if not cell.gang)
    words = [
        f"{count} {'with pods of' if state == 'placed' else 'held for'} {gang}"
        for (gang, state), count in gangs.items()
    ]
    return printable(listed([*words, *(f"{n} {_WORDS[state]}" for state, n in states.items())], _MOST_TOLD))


def _gangs(letters: Mapping[str, str], targets: Mapping[str, str]) -> str:
    items = ""
    for gang, letter in letters.items():
        name = escape(printable(gang))
        shown = f'<a href="#{targets[gang]}">{name}</a>' if gang in targets else name
        sign = f'<span class="nodes" aria-hidden="true"><i class="placed">{letter}</i></span>'
        items += f"<li>{sign} <span>{shown}</span></li>"
    return f'<ul class="legend" aria-label="Gangs">{items}</ul>\n' if items else ""


def _legend(states: set[NodeState]) -> str:
    """Returns the legend of the signs for `states`. It is hidden from screen readers, which read the
    descriptions of racks.
    """
    signs: dict[NodeState, str] = {"placed": "A", "held": "a", **_SIGNS}
    items = "".join(
        f'<li><span class="nodes"><i class="{state}">{signs.get(state, "")}</i></span> {words}</li>'
        for state, words in _WORDS.items()
        if state in states
    )
    return f'<ul class="legend" aria-hidden="true">{items}</ul>\n'


def _nodes(count: Count) -> str:
    return counted(count.nodes, "node")


def _free(count: Count) -> str:
    return f"{count.free} of {count.gpus} GPUs free" if count.gpus else "no whole GPUs"
