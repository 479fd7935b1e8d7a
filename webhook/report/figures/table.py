"""Prints the figures of courses on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from planner.simulation.figures import CourseFigures
from webhook.report.figures.rows import figure_tables
from webhook.report.terminal import table


def print_figures(terminal: Console, figures: Sequence[CourseFigures], first: str) -> None:
    """Prints the tables of the figures. `first`: the heading of the first column, which has the names of
    courses.
    """
    for number, rows in enumerate(figure_tables(figures, first)):
        if number:
            terminal.print(f"\n{rows.caption[0].lower()}{rows.caption[1:]}")
        terminal.print(table(rows.heads, rows.rows))
