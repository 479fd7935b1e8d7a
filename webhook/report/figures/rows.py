"""Makes tables of text from the figures of courses. The tables are the same in every format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.simulation.course import WHOLE_RACKS
from planner.simulation.figures import CourseFigures, WaitingTime


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table with caption, column headings, and a row for each course, whose first cell is the course's
    name.
    """

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def figure_tables(figures: Sequence[CourseFigures], first: str) -> tuple[FigureTable, ...]:
    """Returns the tables: means over time, waiting times by size of gang, and moves if there are any.

    `first`: the heading of the first column, which has the names of courses.
    """
    whole = "/".join(map(str, WHOLE_RACKS))
    heads = (
        first, "GPUs running", "held idle", "nodes partly used", "racks pristine",
        f"{whole} whole racks startable", "gangs waiting", "all-reduce",
    )  # fmt: skip
    sizes = [max((row.waits[i].size for row in figures), key=len) for i in range(len(figures[0].waits))]
    waits = tuple((row.name, *map(_wait, row.waits)) for row in figures)
    return (
        FigureTable("Means over time", heads, tuple(map(_shares, figures))),
        FigureTable(
            "Hours waited, mean / 90th percentile (gangs never started), by GPUs of the gang",
            (first, *sizes),
            waits,
        ),
        *([_moves(figures, first)] if any(row.moves for row in figures) else []),
    )


def _moves(figures: Sequence[CourseFigures], first: str) -> FigureTable:
    rows = (
        (
            row.name,
            f"{moves.gangs:.0f}",
            f"{moves.restarts:.0f}",
            f"{moves.gpu_hours:,.0f}",
            f"{moves.share:.2%}",
        )
        for row in figures
        if (moves := row.moves) is not None
    )
    heads = (first, "gangs helped", "restarts", "GPU-hours lost", "of all GPU time")
    return FigureTable("Moves: gangs and pods restarted elsewhere to make room", heads, tuple(rows))


def _shares(row: CourseFigures) -> tuple[str, ...]:
    spread = f" ({min(row.by_seed):.1%}–{max(row.by_seed):.1%})" if len(row.by_seed) > 1 else ""
    return (
        row.name,
        f"{row.running:.1%}{spread}",
        *(f"{share:.1%}" for share in (row.held, row.partly, row.pristine)),
        " / ".join(f"{share:.0%}" for share in row.startable),
        f"{row.waiting:.1f}",
        f"{row.slowdown:.2f}×",
    )


def _wait(wait: WaitingTime) -> str:
    return f"{wait.mean / 3600:.2f} / {wait.p90 / 3600:.2f}{f' ({wait.never})' if wait.never else ''}"
