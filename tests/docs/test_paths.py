"""Whoever follows a path that a page, a comment or a docstring names finds something there."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
COMMENTED = sorted((ROOT / "manifests").rglob("*.yaml"))
SOURCES = [path for tree in ("planner", "webhook", "certs", "tests") for path in (ROOT / tree).rglob("*.py")]
PATH = re.compile(r"(?<![\w/.@-])((?:planner|webhook|certs|tests)/[\w/.-]*\w/?)(?![\w/.*-]*[*<])")
PLACE = re.compile(r"`([A-Za-z_]\w*)` in `([\w/.]+\.py)`")
FILE = re.compile(r"(?<![\w/.@<*-])((?:\w+/)*\w+\.py)\b")
MODULE = re.compile(r"`+((?:planner|webhook|certs)(?:\.\w+)+)`")


def label(page: Path) -> str:
    """A page by its path from the checkout's root."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [*PAGES, *COMMENTED], ids=label)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    """From the checkout's root."""
    missing = [path for path in PATH.findall(page.read_text()) if not (ROOT / path).exists()]
    assert missing == []


def is_defined(name: str, path: str) -> bool:
    """Whether a file defines a function, a class, a method, a field or a table of this name."""
    definition = rf"^\s*(?:(?:async )?def |class )?{name}\b(?=[(:]| =|\[)"
    return re.search(definition, (ROOT / path).read_text(), re.MULTILINE) is not None


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_what_a_page_says_to_be_in_a_file_is_defined_there(page: Path) -> None:
    """Where it says "`name` in `path`"."""
    places = PLACE.findall(page.read_text())
    assert len(places) >= 20 or page.name != "CONTRIBUTING.md"
    assert [f"{name} in {path}" for name, path in places if not is_defined(name, path)] == []


def defined(module: Path) -> set[str]:
    """The names at the top of a module: functions, classes, tables and what it imports."""
    names: set[str] = set()
    for statement in ast.parse(module.read_text()).body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign() | ast.AnnAssign():
                names |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            case ast.ImportFrom(names=imported):
                names |= {alias.asname or alias.name for alias in imported}
    return names


def leads_somewhere(dotted: str) -> bool:
    """Whether a dotted name is a package, a module, or a name in one."""
    path, *rest = ROOT, *dotted.split(".")
    while rest and (path / rest[0]).is_dir():
        path = path / rest.pop(0)
    if rest and (path / f"{rest[0]}.py").is_file():
        path = path / f"{rest.pop(0)}.py"
    return not rest or rest[0] in defined(path if path.is_file() else path / "__init__.py")


def test_every_module_that_a_docstring_or_a_comment_names_exists() -> None:
    """A package, a module, or a name that one of these has."""
    references = ((source, dotted) for source in SOURCES for dotted in MODULE.findall(source.read_text()))
    assert [
        f"{label(source)}: {dotted}" for source, dotted in references if not leads_somewhere(dotted)
    ] == []


def prose(source: Path) -> Iterator[str]:
    """The docstrings and comments of a module that names a file anywhere."""
    text = source.read_text()
    if not FILE.search(text):  # most modules name no file, and tokens cost a hundred times as much
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


ENDS = {
    "/".join(parts[place:])
    for parts in (path.relative_to(ROOT).parts for path in SOURCES)
    for place in range(len(parts))
}


def has_file(name: str) -> bool:
    """Whether a file of this name, or with this end of its path, is in one of the trees."""
    return name in ENDS


def test_every_file_that_a_docstring_or_a_comment_names_exists() -> None:
    """By its name, or by the end of its path, such as `packing/bounds.py`."""
    references = {
        (source, name) for source in SOURCES for text in prose(source) for name in FILE.findall(text)
    }
    assert len(references) >= 20
    assert sorted(f"{label(source)}: {name}" for source, name in references if not has_file(name)) == []


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_every_file_that_a_page_names_by_the_end_of_its_path_exists(page: Path) -> None:
    """Such as `search/packing/bounds.py`; a name alone may be a user's script."""
    missing = [name for name in FILE.findall(page.read_text()) if "/" in name and not has_file(name)]
    assert missing == []
