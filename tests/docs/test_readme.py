"""The README is true: its commands are run and print what it shows, and its demo output is the demo's.

`python tests/docs/test_readme.py` writes the real output into the README.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from webhook.cli import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
CONSOLE = re.compile(r"```console\n\$ (bayplan [^\n]+)\n(.*?)```", re.DOTALL)
DEMO = re.compile(r"<!-- demo -->\n```text\n([^\n]+)\n(.*?)```", re.DOTALL)
REVISION = re.compile(r"@[0-9a-f]{12}(-dirty)?|@sha256:[0-9a-f]{12}")


def printed(command: str) -> str:
    """What a command prints, both streams, without trailing blanks; the policies' revision left out."""
    out = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(shlex.split(command)[1:])
    lines = (line.rstrip() for line in REVISION.sub("@REVISION", out.getvalue()).splitlines())
    return "\n".join(lines).strip("\n") + "\n"


def story(first_line: str, demo: str) -> str:
    """The part of the demo's output that begins with a line, up to the next blank one."""
    start = demo.index(f"\n{first_line}\n") + 1
    end = demo.find("\n\n", start)
    rule = demo.find("\n─", start)
    return demo[start : min(place for place in (end, rule) if place > 0)] + "\n"


def test_each_command_in_the_readme_prints_what_the_readme_shows() -> None:
    """Run one by one from the checkout."""
    blocks = CONSOLE.findall(README.read_text())
    assert len(blocks) >= 3
    for command, shown in blocks:
        assert printed(command) == shown, command


def test_the_demo_output_in_the_readme_is_the_demos_own() -> None:
    """Every excerpt is a part of what `make demo` prints."""
    demo = printed("bayplan demo")
    excerpts = DEMO.findall(README.read_text())
    assert len(excerpts) >= 2
    for first, rest in excerpts:
        assert story(first, demo) == f"{first}\n{rest}"


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")), ids=lambda p: p.name
)
def test_every_link_in_the_documents_leads_to_a_file(page: Path) -> None:
    """Relative links only; what they name is there."""
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def write() -> None:
    """Put the real output into the README."""
    demo = printed("bayplan demo")
    text = CONSOLE.sub(lambda m: f"```console\n$ {m[1]}\n{printed(m[1])}```", README.read_text())
    text = DEMO.sub(lambda m: f"<!-- demo -->\n```text\n{story(m[1], demo)}```", text)
    README.write_text(text)


if __name__ == "__main__":
    write()
