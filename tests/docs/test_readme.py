"""The pages are true: their commands are run and print what is shown, and the files that they show are there.

`python tests/docs/test_readme.py` writes the real output and the files' text into the pages. A command
stands in a `console` block, a file in the block after `<!-- file: PATH -->`, both from the checkout's root.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from webhook.cli.main import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
RECIPES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
FILE = re.compile(r"<!-- file: (\S+) -->\n```yaml\n(.*?)```", re.DOTALL)
FENCE = re.compile(r"^```(\w+)$", re.MULTILINE)
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


def test_the_readme_shows_commands() -> None:
    """Three at least; what they print is compared below."""
    assert len(CONSOLE.findall(README.read_text())) >= 3


@pytest.mark.parametrize(
    "page", [page for page in PAGES if CONSOLE.search(page.read_text())], ids=lambda page: page.name
)
def test_each_command_in_a_page_prints_what_the_page_shows(page: Path) -> None:
    """Run one by one from the checkout."""
    for command, shown in CONSOLE.findall(page.read_text()):
        assert printed(command) == shown, command


@pytest.mark.parametrize(
    "page", [page for page in PAGES if FILE.search(page.read_text())], ids=lambda page: page.name
)
def test_each_file_in_a_page_is_the_file_of_that_name(page: Path) -> None:
    """What a reader sees is what the commands read."""
    for path, shown in FILE.findall(page.read_text()):
        assert (ROOT / path).read_text() == shown, path


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.name)
def test_every_block_in_a_recipe_is_a_file_or_a_command_that_is_run(page: Path) -> None:
    """Nothing stands there that no test looks at."""
    text = page.read_text()
    checked = [*CONSOLE.findall(text), *FILE.findall(text)]
    assert len(FENCE.findall(text)) == len(checked) >= 3


def test_the_demo_output_in_the_readme_is_the_demos_own() -> None:
    """Every excerpt is a part of what `make demo` prints."""
    demo = printed("bayplan demo")
    excerpts = DEMO.findall(README.read_text())
    assert len(excerpts) >= 2
    for first, rest in excerpts:
        assert story(first, demo) == f"{first}\n{rest}"


def write() -> None:
    """Put the real output and the files into the pages."""
    demo = printed("bayplan demo")
    for page in PAGES:
        before = page.read_text()
        text = FILE.sub(lambda m: f"<!-- file: {m[1]} -->\n```yaml\n{(ROOT / m[1]).read_text()}```", before)
        text = CONSOLE.sub(lambda m: f"```console\n$ {m[1]}\n{printed(m[1])}```", text)
        text = DEMO.sub(lambda m: f"<!-- demo -->\n```text\n{story(m[1], demo)}```", text)
        if text != before:
            page.write_text(text)


if __name__ == "__main__":
    write()
