"""A simulation as one HTML page: the plot, and the figures as tables. No script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from planner.simulation.results import SimulationResult
from planner.simulation.simulate import WHOLE_RACKS
from webhook.cli.simulate.plot import PlotScene, plot

_Cells = Callable[[SimulationResult], Sequence[str]]
"""A strategy's cells in a row."""

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; }
svg { background: white; height: auto; max-width: 100%; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }
caption { font-weight: 600; padding: .25rem 0; text-align: left; }
th, td { border-bottom: 1px solid #8888; padding: .25rem .75rem; text-align: right; white-space: nowrap; }
th:first-child { text-align: left; }
"""


def page(scenes: Sequence[PlotScene]) -> str:
    """The whole document: of each load the figures, and all loads drawn."""
    tables = "".join(f"<h2>{escape(scene.title)}</h2>\n{''.join(_tables(scene))}" for scene in scenes)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>bayplan simulate</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>Ways to place gangs</h1>\n{tables}<h2>Drawn</h2>\n"
        f'<div class="wide" tabindex="0">\n{plot(scenes)}</div>\n</main>\n</body>\n</html>\n'
    )


def _tables(scene: PlotScene) -> Iterator[str]:
    whole = "/".join(map(str, WHOLE_RACKS))
    shares = ("GPUs running", "held idle", "nodes partly used", "racks pristine", f"{whole} racks startable")
    yield _table("Shares of the time", (*shares, "all-reduce"), scene.outcomes, _shares)
    sizes = [wait.size for wait in scene.outcomes[0].waits]
    gangs = [f"{size} GPUs" for size in sizes]
    yield _table("Mean wait in hours, by size of the gang", gangs, scene.outcomes, _waits)


def _shares(result: SimulationResult) -> list[str]:
    shares = (result.running, result.held, result.partly, result.pristine)
    startable = " / ".join(f"{share:.0%}" for share in result.startable)
    return [*(f"{share:.1%}" for share in shares), startable, f"{result.slowdown:.2f}×"]


def _waits(result: SimulationResult) -> list[str]:
    return [f"{wait.mean / 3600:.2f}" for wait in result.waits]


def _table(caption: str, heads: Sequence[str], outcomes: Sequence[SimulationResult], cells: _Cells) -> str:
    columns = "".join(f'<th scope="col">{escape(head)}</th>' for head in ("strategy", *heads))
    rows = "".join(
        f'<tr><th scope="row">{escape(result.strategy)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells(result))
        + "</tr>\n"
        for result in outcomes
    )
    return (
        f'<div class="wide" tabindex="0"><table>\n<caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{columns}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
