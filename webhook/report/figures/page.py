"""Writes courses as one HTML page with tables and plots. It has no scripts and loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from webhook.report.figures.plot import PlotScene, plot
from webhook.report.figures.rows import FigureTable, figure_tables

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 80rem; padding: 1rem; }
svg { background: white; height: auto; max-width: 100%; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
caption { font-weight: 600; padding: .25rem 0; text-align: left; }
th, td { border-bottom: 1px solid #8888; padding: .25rem .75rem; text-align: right; white-space: nowrap; }
th:first-child { text-align: left; }
"""


def page(scenes: Sequence[PlotScene], title: str, first: str) -> str:
    """Returns the HTML document: the figures of each scene, and the plot.

    `first`: the heading of the first column, which has the names of courses.
    """
    tables = "".join(f"<h2>{escape(scene.title)}</h2>\n{''.join(_tables(scene, first))}" for scene in scenes)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{tables}<h2>Drawn</h2>\n"
        f'<div class="wide" tabindex="0">\n{plot(scenes)}</div>\n</main>\n</body>\n</html>\n'
    )


def _tables(scene: PlotScene, first: str) -> Iterator[str]:
    for rows in figure_tables(scene.figures, first):
        yield _table(rows)


def _table(table: FigureTable) -> str:
    columns = "".join(f'<th scope="col">{escape(head)}</th>' for head in table.heads)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>\n"
        for name, *cells in table.rows
    )
    return (
        f'<div class="wide" tabindex="0"><table>\n<caption>{escape(table.caption)}</caption>\n'
        f"<thead><tr>{columns}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
