"""The plot of a simulation: GPUs at work, room for large gangs, and waits by size, as one SVG.

A few dozen rectangles and lines; a plotting library would be the largest dependency for the smallest use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import log

from planner.simulation.jobs import DAY
from planner.simulation.results import SimulationResult
from planner.simulation.simulate import WHOLE_RACKS, Sample, SimulationRun

COLOURS = ("#999999", "#e69f00", "#cc79a7", "#d55e00", "#009e73", "#0072b2")
"""Colours that the colour-blind can tell apart (Okabe and Ito's)."""


WIDTH, HEIGHT, LEFT, TOP = 960, 1010, 70, 60


PANEL = 180


_SMOOTH = 9


WAITS = (
    ("1 min", 1 / 60),
    ("10 min", 1 / 6),
    ("1 h", 1.0),
    ("10 h", 10.0),
    ("100 h", 100.0),
    ("1,000 h", 1000.0),
)
"""Marks of the axis of waits, in hours. It is logarithmic: some strategies let gangs wait minutes and some
weeks, and on an even axis the longest would make all others the same."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Values to shares of a panel's height, with the marks that tell them."""

    marks: Sequence[tuple[str, float]]
    share: Callable[[float], float]


PERCENT = Axis([(f"{mark} %", mark) for mark in (0, 25, 50, 75, 100)], lambda value: value / 100)


def waits_axis(longest: float) -> Axis:
    """From a minute to the first mark that is not below the longest wait, in hours."""
    count = next((place for place, (_, mark) in enumerate(WAITS, 1) if mark >= longest), len(WAITS))
    marks = WAITS[: max(2, count)]
    low, high = marks[0][1], marks[-1][1]
    return Axis(marks, lambda value: min(1.0, max(0.0, log(max(value, low) / low) / log(high / low))))


@dataclass(frozen=True, slots=True)
class PlotScene:
    """What is drawn of one load: a title, a run of each strategy for the lines, outcomes for the bars."""

    title: str
    runs: Sequence[SimulationRun]
    outcomes: Sequence[SimulationResult]


def plot(scenes: Sequence[PlotScene]) -> str:
    """The whole SVG document: the scenes below each other."""
    tall = HEIGHT * len(scenes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" font-family="sans-serif">',
        f"<title>{escape('; '.join(scene.title for scene in scenes))}</title>",
        f'<rect width="{WIDTH}" height="{tall}" fill="white"/>',
    ]
    for place, scene in enumerate(scenes):
        parts += [f'<g transform="translate(0 {place * HEIGHT})">', *_scene(scene), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _scene(scene: PlotScene) -> list[str]:
    top, step = TOP + 20, PANEL + 50
    waits = [[wait.mean / 3600 for wait in outcome.waits] for outcome in scene.outcomes]
    sizes = [
        max((outcome.waits[size].size for outcome in scene.outcomes), key=len)
        for size in range(len(scene.outcomes[0].waits))
    ]
    longest = max((wait for row in waits for wait in row), default=0.0)
    startable = [[share * 100 for share in outcome.startable] for outcome in scene.outcomes]
    whole = [f"{racks} whole rack{'' if racks == 1 else 's'}" for racks in WHOLE_RACKS]
    return [
        _text(LEFT, 24, scene.title, size=15),
        *_legend([run.strategy for run in scene.runs]),
        *_lines(scene.runs, top, "GPUs of running gangs, of all", lambda sample: sample.running),
        *_lines(scene.runs, top + step, "racks pristine, of all", lambda sample: sample.pristine),
        *_bars(
            startable, whole, top + 2 * step, "time in which a gang of so many racks could start", PERCENT
        ),
        *_bars(
            waits, sizes, top + 3 * step, "mean wait by size of gang (GPUs), logarithmic", waits_axis(longest)
        ),
    ]


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def _legend(names: Sequence[str]) -> list[str]:
    parts = []
    for place, name in enumerate(names):
        x = LEFT + place * 145
        parts.append(f'<rect x="{x}" y="38" width="12" height="12" fill="{_colour(place)}"/>')
        parts.append(_text(x + 18, 48, name))
    return parts


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _frame(top: float, title: str, axis: Axis) -> list[str]:
    """A panel's title, and a line across it at each mark."""
    parts = [_text(LEFT, top - 8, title)]
    for words, mark in axis.marks:
        y = top + PANEL * (1 - axis.share(mark))
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 30}" stroke="#dddddd" fill="none"/>')
        parts.append(_text(LEFT - 6, y + 4, words, anchor="end"))
    return parts


def _lines(runs: Sequence[SimulationRun], top: float, title: str, of: Callable[[Sample], float]) -> list[str]:
    parts = _frame(top, title, PERCENT)
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
    for day in days_shown(end / DAY):
        x = LEFT + width * day * DAY / end
        parts.append(f'<path d="M{x:.1f} {top + PANEL}v4" stroke="#777777" fill="none"/>')
        parts.append(_text(x, top + PANEL + 16, f"day {day:g}", anchor="middle"))
    return parts


def days_shown(days: float) -> list[float]:
    """About six marks from 0 on, at whole steps."""
    step = next(
        (step for step in (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if step * 6 >= days), days
    )
    return [place * step for place in range(int(days / step) + 1)]


def _smooth(values: Sequence[float]) -> list[float]:
    """Each value as the mean of those around it."""
    half = _SMOOTH // 2
    around = (values[max(0, place - half) : place + half + 1] for place in range(len(values)))
    return [sum(part) / len(part) for part in around]


def _bars(
    rows: Sequence[Sequence[float]], labels: Sequence[str], top: float, title: str, axis: Axis
) -> list[str]:
    """A row of values for each strategy, in groups of one for each label."""
    parts = _frame(top, title, axis)
    group = (WIDTH - 30 - LEFT) / len(labels)
    bar = group * 0.8 / len(rows)
    for column, label in enumerate(labels):
        for place, row in enumerate(rows):
            tall = max(1.0, PANEL * axis.share(row[column]))  # nothing at all would look like a missing bar
            x, y = LEFT + column * group + group * 0.1 + place * bar, top + PANEL - tall
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{bar * 0.9:.1f}" height="{tall:.1f}" '
                f'fill="{_colour(place)}"><title>{row[column]:.2f}</title></rect>'
            )
        middle = LEFT + (column + 0.5) * group
        parts.append(_text(middle, top + PANEL + 16, label, anchor="middle"))
    return parts
