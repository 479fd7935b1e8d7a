"""A page whose blocks are run in their order, in one folder, as its reader does.

A block is `sh`, with a comment before it that says where it is run:

- `<!-- run -->`: here, on files alone;
- `<!-- cluster -->`: on a control plane, by the end-to-end tests;
- `<!-- by hand -->`: nowhere, for it needs Docker, a registry or another scheduler; its `bayplan` lines must
  parse, and the rest must be sound shell.

A `text` block right after one is what it prints, where `…` stands for any text, and alone on a line for any
lines. A `yaml` block after `<!-- write: PATH -->` is written into the folder. `console` blocks are
`test_readme`'s.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
FOLDERS = ("start", "tutorials", "how-to")
"""Those of docs/ whose pages are run."""

PAGES = sorted(page for folder in FOLDERS for page in (ROOT / "docs" / folder).glob("*.md"))
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
MARKS = ("run", "cluster", "by hand")
Where = Literal["run", "cluster", "by hand"]


@dataclass(frozen=True, slots=True)
class Step:
    """A block of shell lines. `writes`: the files that the page shows before it, by path."""

    where: str
    lines: str
    shown: str
    writes: Mapping[str, str]


def steps(page: Path) -> Iterator[Step]:
    """The page's blocks in their order. Raises `AssertionError` for one that nobody would look at."""
    text = page.read_text()
    blocks = list(BLOCK.finditer(text))
    writes: dict[str, str] = {}
    for place, block in enumerate(blocks):
        mark, language = block["mark"] or "", block["language"]
        following = blocks[place + 1] if place + 1 < len(blocks) else None
        if language == "yaml" and mark.startswith("write: "):
            writes[mark.removeprefix("write: ")] = block["body"]
        elif language == "sh":
            assert mark in MARKS, f"{page.name}: a block says not where it is run:\n{block['body']}"
            shows = following is not None and following["language"] == "text" and not following["mark"]
            yield Step(mark, block["body"], following["body"] if shows and following else "", writes)
            writes = {}
        elif language == "text":
            before = blocks[place - 1]["language"] if place else ""
            assert before == "sh", f"{page.name}: output of nothing"
        else:
            assert language == "console" or mark.startswith("file: "), f"{page.name}: {block[0][:80]}"
    assert not writes, f"{page.name}: {', '.join(writes)} is used by no block"


def run(page: Path, folder: Path, places: tuple[Where, ...], environment: Mapping[str, str]) -> int:
    """Run the blocks that belong to these places, and compare what they print; how many there were."""
    done = 0
    for step in steps(page):
        for path, text in step.writes.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        if step.where in places:
            printed = shell(step.lines, folder, environment)
            assert like(printed, step.shown), f"{step.lines}\n--- printed\n{printed}\n--- page\n{step.shown}"
            done += 1
    return done


def shell(lines: str, folder: Path, environment: Mapping[str, str]) -> str:
    """What the lines print, both streams as a terminal shows them. They must succeed."""
    command = ["bash", "-euc", lines]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{lines}\n{done.stdout}"
    return done.stdout


def like(printed: str, shown: str) -> bool:
    """Whether a block of output is what was printed; an empty one shows nothing of it."""
    lines = [re.escape(line.rstrip()).replace("…", ".*") for line in shown.strip("\n").split("\n")]
    pattern = "".join("(?:.*\n)*" if line == ".*" else f"{line}\n" for line in lines)
    text = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").split("\n"))
    return not shown or re.fullmatch(pattern, text) is not None


def on_path(folder: Path, *programs: Path) -> dict[str, str]:
    """An environment in which `bayplan` is that of this checkout, and the folders of programs are found.

    What it prints is buffered as for anybody: a reader's Python is not told otherwise.
    """
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "bayplan"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m webhook.cli.main "$@"\n')
    script.chmod(0o755)
    path = ":".join(map(str, (folder, *programs, os.environ["PATH"])))
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**inherited, "PATH": path, "COLUMNS": "120", "HOME": str(folder)}
