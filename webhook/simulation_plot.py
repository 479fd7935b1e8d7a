"""The plot of a simulation: GPUs at work and pristine racks over the days, and waits by size, as one SVG.

A few dozen rectangles and lines; a plotting library would be the largest dependency for the smallest use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from planner.outcome import Outcome
from planner.simulated_jobs import DAY
from planner.simulation import Run, Sample

COLOURS = ("#999999", "#e69f00", "#cc79a7", "#009e73", "#0072b2")
"""Colours that the colour-blind can tell apart (Okabe and Ito's)."""
WIDTH, HEIGHT, LEFT, TOP = 960, 760, 70, 60
PANEL = 180
_SMOOTH = 9


def plot(runs: Sequence[Run], outcomes: Sequence[Outcome], title: str) -> str:
    """The whole SVG document."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 24, title, size=15),
        *_legend([run.strategy for run in runs]),
        *_lines(runs, TOP + 20, "GPUs of running gangs, % of all", lambda sample: sample.running),
        *_lines(runs, TOP + 20 + PANEL + 50, "racks pristine, % of all", lambda sample: sample.pristine),
        *_bars(outcomes, TOP + 20 + 2 * (PANEL + 50), "mean wait by size of gang (GPUs), hours"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def _legend(names: Sequence[str]) -> list[str]:
    parts = []
    for place, name in enumerate(names):
        x = LEFT + place * 150
        parts.append(f'<rect x="{x}" y="38" width="12" height="12" fill="{_colour(place)}"/>')
        parts.append(_text(x + 18, 48, name))
    return parts


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _frame(top: float, title: str, marks: Sequence[tuple[float, str]]) -> list[str]:
    """A panel's title, and lines across it at these shares of its height."""
    parts = [_text(LEFT, top - 8, title)]
    for share, words in marks:
        y = top + PANEL * (1 - share)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 30}" stroke="#dddddd" fill="none"/>')
        parts.append(_text(LEFT - 6, y + 4, words, anchor="end"))
    return parts


def _lines(runs: Sequence[Run], top: float, title: str, of: Callable[[Sample], float]) -> list[str]:
    parts = _frame(top, title, [(share / 100, str(share)) for share in (0, 25, 50, 75, 100)])
    end = max(run.mean.time for run in runs)
    width = WIDTH - 30 - LEFT
    for place, run in enumerate(runs):
        values = _smooth([of(sample) for sample in run.samples])
        points = " ".join(
            f"{LEFT + width * sample.time / end:.1f},{top + PANEL * (1 - value):.1f}"
            for sample, value in zip(run.samples, values, strict=True)
        )
        style = f'fill="none" stroke="{_colour(place)}" stroke-width="1.6"'
        parts.append(f'<polyline points="{points}" {style}/>')
    days = end / DAY
    parts.append(_text(LEFT, top + PANEL + 16, "day 0"))
    parts.append(_text(WIDTH - 30, top + PANEL + 16, f"day {days:g}", anchor="end"))
    return parts


def _smooth(values: Sequence[float]) -> list[float]:
    """Each value as the mean of those around it."""
    half = _SMOOTH // 2
    around = (values[max(0, place - half) : place + half + 1] for place in range(len(values)))
    return [sum(part) / len(part) for part in around]


def _bars(outcomes: Sequence[Outcome], top: float, title: str) -> list[str]:
    hours = [[wait.mean / 3600 for wait in outcome.waits] for outcome in outcomes]
    highest = max((value for row in hours for value in row), default=0.0) or 1.0
    parts = _frame(top, title, [(share, f"{share * highest:.1f}") for share in (0, 0.5, 1.0)])
    classes = len(outcomes[0].waits)
    group = (WIDTH - 30 - LEFT) / classes
    bar = group * 0.8 / len(outcomes)
    for size in range(classes):
        for place, row in enumerate(hours):
            tall = PANEL * row[size] / highest
            x, y = LEFT + size * group + group * 0.1 + place * bar, top + PANEL - tall
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{bar * 0.9:.1f}" height="{tall:.1f}" '
                f'fill="{_colour(place)}"><title>{row[size]:.2f} h</title></rect>'
            )
        middle = LEFT + (size + 0.5) * group
        label = max(outcomes, key=lambda outcome: len(outcome.waits[size].size)).waits[size].size
        parts.append(_text(middle, top + PANEL + 16, label, anchor="middle"))
    return parts
