"""Whoever follows a page of the start, a tutorial or a how-to in an empty folder gets what it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.docs.sessions import FOLDERS, PAGES, ROOT, like, on_path, run, steps
from webhook.cli.main import COMMANDS, main, parser

CALL = re.compile(r"(?:^|[|&(]\s*)(?:kubectl )?bayplan ([^\n|&>)]+)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_has_one_do_on_files_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    """Block by block in one folder, in which nothing is but what was unpacked."""
    folder = tmp_path / "folder"
    environment = on_path(tmp_path / "bin")
    assert main(["unpack", str(folder)]) == 0
    run(page, folder, ("run",), environment)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_line_of_a_page_is_sound_shell_and_every_command_of_bayplan_parses(page: Path) -> None:
    """Those too that are run on a control plane alone, or by hand."""
    commands = parser(*COMMANDS)
    for step in steps(page):
        checked = subprocess.run(
            ["bash", "-n"], input=step.lines, text=True, capture_output=True, check=False
        )
        assert checked.returncode == 0, checked.stderr
        for call in CALL.findall(step.lines.replace("\\\n", " ")):
            words = shlex.split(call, comments=True)
            commands.parse_args(words) if words[0] != "--version" else None


def test_there_are_pages_of_each_sort() -> None:
    """So that pages that were moved do not pass for nothing."""
    assert {page.parent.name for page in PAGES} == set(FOLDERS)
    assert sum(len(list(steps(page))) for page in PAGES) > 30


def test_whatever_needs_a_control_plane_is_run_on_one() -> None:
    """Every page with such a block is in the end-to-end test."""
    needing = {page.stem for page in PAGES if any(step.where == "cluster" for step in steps(page))}
    source = (ROOT / "tests" / "e2e" / "test_tutorials.py").read_text()
    assert needing == set(re.findall(r'"(?:start|tutorials|how-to)/([\w-]+)\.md"', source))


@pytest.mark.parametrize(
    ("printed", "shown", "alike"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("a 12 s\n", "a … s\n", True),
        ("a\nx\ny\nb\n", "a\n…\nb\n", True),
        ("a\nb\n", "a\n…\nb\n", True),
        ("a\nc\n", "a\nb\n", False),
        ("anything\n", "", True),
    ],
)
def test_output_is_compared_to_the_letter_but_for_what_is_left_out(
    printed: str, shown: str, alike: bool
) -> None:
    """`…` is any text, and alone on a line any lines."""
    assert like(printed, shown) is alike
