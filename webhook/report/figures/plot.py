"""Draws courses as one SVG: GPU utilisation, waiting gangs, room for large gangs, and waits by size.

The plot is a few dozen rectangles and lines, which does not justify a plotting library as a dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import log

from planner.simulation.course import WHOLE_RACKS, Course, Sample
from planner.simulation.figures import CourseFigures
from planner.simulation.jobs import DAY

COLOURS = ("#999999", "#e69f00", "#cc79a7", "#d55e00", "#009e73", "#0072b2")
"""The palette of Okabe and Ito, whose colours are distinguishable with colour blindness."""


WIDTH, HEIGHT, LEFT, TOP = 960, 1470, 70, 60


PANEL = 180
"""The height of a panel (one diagram of a scene) in units of the SVG."""


_SMOOTH = 9


WAITS = (
    ("1 min", 1 / 60),
    ("10 min", 1 / 6),
    ("1 h", 1.0),
    ("10 h", 10.0),
    ("100 h", 100.0),
    ("1,000 h", 1000.0),
)
"""The marks of the axis of waiting times: label, and hours. The axis is logarithmic: with some strategies
gangs wait for minutes, with others for weeks, and on a linear axis short waits would look the same.
"""


UNITS = {
    1.0: (1, 5, 15),
    60.0: (1, 5, 10, 20),
    3600.0: (1, 2, 4, 6, 12),
    DAY: (1, 2, 5, 10, 20, 50, 100, 200),
}
"""The possible steps between two marks on the time axis, by unit (in seconds)."""
UNIT_WORDS = {1.0: "{} s", 60.0: "{} min", 3600.0: "{} h", DAY: "day {}"}


@dataclass(frozen=True, slots=True)
class Axis:
    """A vertical axis. `marks`: pairs of label and value. `share`: maps a value to a share of the panel's
    height (0 to 1).
    """

    marks: Sequence[tuple[str, float]]
    share: Callable[[float], float]


SHARES = Axis([(f"{mark} %", mark / 100) for mark in (0, 25, 50, 75, 100)], lambda value: value)


def queue_axis(longest: float) -> Axis:
    """Returns an axis from 0 to the first power of ten at or above the longest queue. It is linear up to
    1, and logarithmic above.
    """
    powers = next(power for power in range(1, 10) if 10**power >= longest)
    marks = [("0", 0.0), *((f"{10**power:,}", float(10**power)) for power in range(powers + 1))]
    return Axis(marks, lambda value: (min(value, 1.0) + log(max(value, 1.0), 10)) / (powers + 1))


def waits_axis(longest: float) -> Axis:
    """Returns an axis from one minute to the first mark at or above the longest wait (in hours)."""
    count = next((index for index, (_, mark) in enumerate(WAITS, 1) if mark >= longest), len(WAITS))
    marks = WAITS[: max(2, count)]
    low, high = marks[0][1], marks[-1][1]
    return Axis(marks, lambda value: min(1.0, max(0.0, log(max(value, low) / low) / log(high / low))))


@dataclass(frozen=True, slots=True)
class PlotScene:
    """The content of a group of panels: a title, courses for the lines, and the figures of each course for
    the bars.
    """

    title: str
    courses: Sequence[Course]
    figures: Sequence[CourseFigures]


def plot(scenes: Sequence[PlotScene]) -> str:
    """Returns the SVG document, with one scene below the other."""
    tall = HEIGHT * len(scenes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" font-family="sans-serif">',
        f"<title>{escape('; '.join(scene.title for scene in scenes))}</title>",
        f'<rect width="{WIDTH}" height="{tall}" fill="white"/>',
    ]
    for index, scene in enumerate(scenes):
        parts += [f'<g transform="translate(0 {index * HEIGHT})">', *_scene(scene), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _scene(scene: PlotScene) -> list[str]:
    top, step = TOP + 20, PANEL + 50
    waits = [[wait.mean / 3600 for wait in row.waits] for row in scene.figures]
    sizes = [
        max((row.waits[size].size for row in scene.figures), key=len)
        for size in range(len(scene.figures[0].waits))
    ]
    longest = max((wait for row in waits for wait in row), default=0.0)
    queued = max((sample.waiting for course in scene.courses for sample in course.samples), default=0.0)
    startable = [list(row.startable) for row in scene.figures]
    whole = [f"{racks} whole rack{'' if racks == 1 else 's'}" for racks in WHOLE_RACKS]
    return [
        _text(LEFT, 24, scene.title, size=15),
        *_legend([course.name for course in scene.courses]),
        *_lines(scene.courses, top, "GPUs of running gangs, of all", SHARES, lambda sample: sample.running),
        *_lines(scene.courses, top + step, "GPUs held and idle, of all", SHARES, lambda sample: sample.held),
        *_lines(
            scene.courses,
            top + 2 * step,
            "gangs that wait, logarithmic above 1",
            queue_axis(queued),
            lambda sample: sample.waiting,
        ),
        *_lines(
            scene.courses, top + 3 * step, "racks pristine, of all", SHARES, lambda sample: sample.pristine
        ),
        *_bars(startable, whole, top + 4 * step, "time in which a gang of so many racks could start", SHARES),
        *_bars(
            waits, sizes, top + 5 * step, "mean wait by size of gang (GPUs), logarithmic", waits_axis(longest)
        ),
    ]


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def _legend(names: Sequence[str]) -> list[str]:
    parts = []
    for index, name in enumerate(names):
        x = LEFT + index * 145
        parts.append(f'<rect x="{x}" y="38" width="12" height="12" fill="{_colour(index)}"/>')
        parts.append(_text(x + 18, 48, name))
    return parts


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _frame(top: float, title: str, axis: Axis) -> list[str]:
    """Returns the SVG elements of a panel's title, and of a grid line with label at each mark."""
    parts = [_text(LEFT, top - 8, title)]
    for words, mark in axis.marks:
        y = top + PANEL * (1 - axis.share(mark))
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 30}" stroke="#dddddd" fill="none"/>')
        parts.append(_text(LEFT - 6, y + 4, words, anchor="end"))
    return parts


def _lines(
    courses: Sequence[Course], top: float, title: str, axis: Axis, of: Callable[[Sample], float]
) -> list[str]:
    parts = _frame(top, title, axis)
    end = max(course.mean.time for course in courses) or 1.0
    width = WIDTH - 30 - LEFT
    for index, course in enumerate(courses):
        values = _smooth([axis.share(of(sample)) for sample in course.samples])
        points = " ".join(
            f"{LEFT + width * sample.time / end:.1f},{top + PANEL * (1 - value):.1f}"
            for sample, value in zip(course.samples, values, strict=True)
        )
        style = f'fill="none" stroke="{_colour(index)}" stroke-width="1.6"'
        parts.append(f'<polyline points="{points}" {style}/>')
    for words, seconds in time_marks(end):
        x = LEFT + width * seconds / end
        parts.append(f'<path d="M{x:.1f} {top + PANEL}v4" stroke="#777777" fill="none"/>')
        parts.append(_text(x, top + PANEL + 16, words, anchor="middle"))
    return parts


def time_marks(end: float) -> list[tuple[str, float]]:
    """Returns label and seconds of about six marks from 0 to `end` (seconds), at round values of a
    suitable unit.
    """
    unit, step = next(
        ((unit, step) for unit, steps in UNITS.items() for step in steps if step * unit * 6 >= end),
        (DAY, end / DAY / 6),
    )
    times = [index * step for index in range(int(end / (step * unit)) + 1)]
    return [(UNIT_WORDS[unit].format(f"{time:g}"), time * unit) for time in times]


def _smooth(values: Sequence[float]) -> list[float]:
    """Returns the values smoothed by a moving average over `_SMOOTH` values."""
    half = _SMOOTH // 2
    around = (values[max(0, index - half) : index + half + 1] for index in range(len(values)))
    return [sum(part) / len(part) for part in around]


def _bars(
    rows: Sequence[Sequence[float]], labels: Sequence[str], top: float, title: str, axis: Axis
) -> list[str]:
    """Returns the SVG elements of a bar chart: for each label a group, with a bar for each course."""
    parts = _frame(top, title, axis)
    group = (WIDTH - 30 - LEFT) / len(labels)
    bar = group * 0.8 / len(rows)
    for column, label in enumerate(labels):
        for index, row in enumerate(rows):
            tall = max(1.0, PANEL * axis.share(row[column]))  # a bar of height 0 would look like missing data
            x, y = LEFT + column * group + group * 0.1 + index * bar, top + PANEL - tall
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{bar * 0.9:.1f}" height="{tall:.1f}" '
                f'fill="{_colour(index)}"><title>{row[column]:.2f}</title></rect>'
            )
        middle = LEFT + (column + 0.5) * group
        parts.append(_text(middle, top + PANEL + 16, label, anchor="middle"))
    return parts
