"""Writes the file of `--plot`: an SVG, or an HTML page with the figures as well."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from planner.model.errors import InputError, Where
from webhook.cli.common import inputs
from webhook.report.figures.page import page
from webhook.report.figures.plot import PlotScene, plot


def plot_file(text: str) -> str:
    """Returns the file name if it ends in .svg or .html and its folder exists; otherwise raises
    `ArgumentTypeError`, before any work is done.
    """
    if not text.endswith((".svg", ".html")):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a .svg nor a .html file")
    if not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is in a folder that does not exist")
    return text


def write_plot(path: str, scenes: Sequence[PlotScene], title: str, first: str) -> None:
    """Writes the plot in the format of the file's extension.

    `first`: the heading of the column with the names of courses. Raises `InputError` if the file cannot be
    written.
    """
    text = page(scenes, title, first) if path.endswith(".html") else plot(scenes)
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", Where(path)) from error
    inputs.note(f"plot: {path}")
