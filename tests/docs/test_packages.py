"""The two trees are what their first pages say: packages, each with a charter, on one staircase."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TREES = ("planner", "webhook")
PACKAGES = sorted(path.parent for tree in (*TREES, "certs") for path in (ROOT / tree).rglob("__init__.py"))


def packages(tree: str) -> list[str]:
    """The packages at the root of a tree, by name."""
    return sorted(path.parent.name for path in (ROOT / tree).glob("*/__init__.py"))


def charter(package: Path) -> str:
    """The docstring of a package; "" where it has none."""
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""


def staircase(tree: str) -> list[str]:
    """The packages of a tree as its import contract orders them, the uppermost first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (contract for contract in contracts if contract.get("containers") == [tree])
    return [name.strip() for layer in contract["layers"] for name in layer.split("|")]


@pytest.mark.parametrize("tree", TREES)
def test_nothing_but_packages_lies_at_the_root_of_a_tree(tree: str) -> None:
    """A module has a room, never the hall."""
    assert [path.name for path in (ROOT / tree).glob("*.py")] == ["__init__.py"]


@pytest.mark.parametrize("tree", TREES)
def test_the_tests_of_a_tree_stand_in_the_same_packages(tree: str) -> None:
    """None at the root, and no folder for what is no package."""
    root = ROOT / "tests" / tree
    assert list(root.glob("test_*.py")) == []
    folders = {path.relative_to(root).parent for path in root.rglob("test_*.py")}
    assert [str(folder) for folder in folders if not (ROOT / tree / folder / "__init__.py").is_file()] == []


@pytest.mark.parametrize("tree", TREES)
def test_the_first_page_of_a_tree_lists_its_packages(tree: str) -> None:
    """Each that is there, and none that is not, in the order of the import contract."""
    listed = re.findall(r"^- `(\w+)`:", charter(ROOT / tree), re.MULTILINE)
    assert sorted(listed) == packages(tree)
    assert listed == staircase(tree)


@pytest.mark.parametrize("package", [f"{tree}/{name}" for tree in TREES for name in packages(tree)])
def test_each_package_says_what_it_is_for(package: str) -> None:
    """Its first sentence is what is at home in it."""
    assert charter(ROOT / package).partition("\n")[0].endswith((".", ":"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(ROOT)))
def test_a_package_names_modules_that_it_has(package: Path) -> None:
    """In its list, and where it says what to read first."""
    text = charter(package)
    listed = [
        name for row in re.findall(r"^- (.*?):", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]
    first = [name.partition(".")[0] for name in re.findall(r"Begin with `([\w.]+)`", text)]
    modules = {path.stem for path in package.iterdir()}
    assert [name for name in (*listed, *first) if name not in modules] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(ROOT)))
def test_a_package_says_where_to_begin_and_names_its_modules(package: Path) -> None:
    """All of them, or it says that its modules are of one kind: one file each, or one file per subject."""
    text = " ".join(charter(package).split())
    assert re.search(r"\b[Bb]egin with ", text)
    if not re.search(r"\b(?:a|one) file (?:each|per \w+|a subject)", text, re.IGNORECASE):
        words = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]*`", text))))
        modules = {path.stem for path in package.glob("*.py")} | {
            p.parent.name for p in package.glob("*/__init__.py")
        }
        assert modules - words - {"__init__"} == set()


@pytest.mark.parametrize("tree", TREES)
def test_contributing_shows_the_staircase_of_the_import_contract(tree: str) -> None:
    """The same packages in the same order, and each begins with a file that is there."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(rf"^\| `{tree}/(\w+)/` \| .* \| `([\w/.]+)` \|$", text, re.MULTILINE)
    assert [name for name, _ in rows] == staircase(tree)
    for name, first in rows:
        assert (ROOT / tree / name / first).is_file(), f"{name}: {first}"


@cache
def imports(tree: str) -> set[tuple[str, str]]:
    """Which module of a tree imports which, wherever in its text."""
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / tree).rglob("*.py")
    }
    pairs = set()
    for module, path in modules.items():
        for statement in ast.walk(ast.parse(path.read_text())):
            if isinstance(statement, ast.ImportFrom) and statement.module:
                names = [f"{statement.module}.{alias.name}" for alias in statement.names]
            elif isinstance(statement, ast.Import):
                names = [alias.name for alias in statement.names]
            else:
                continue
            imported = (name if name in modules else name.rpartition(".")[0] for name in names)
            pairs |= {(module, name) for name in imported if name in modules and name != module}
    return pairs


@pytest.mark.parametrize(("tree", "arrows"), [("planner", 60), ("webhook", 50)])
def test_a_picture_of_the_imports_between_packages_can_be_read(tree: str, arrows: int) -> None:
    """No more arrows than architecture asks for: an import from far away needs a reason, or another home."""
    rooms = {(module.split(".")[1], name.split(".")[1]) for module, name in imports(tree) if "." in module}
    assert len({pair for pair in rooms if len(set(pair)) == 2}) <= arrows


def test_no_chain_of_imports_in_the_planner_is_longer_than_18_modules() -> None:
    """Who follows the imports of a module has a bounded way; moves are handed the planner (decision 154)."""
    below: dict[str, set[str]] = {}
    for importing, imported in imports("planner"):
        below.setdefault(importing, set()).add(imported)

    @cache
    def length(name: str) -> int:
        return 1 + max((length(other) for other in below.get(name, ())), default=0)

    assert max(map(length, below)) <= 18


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(ROOT)))
def test_a_package_has_about_2500_lines_of_its_own_at_most(package: Path) -> None:
    """What is in packages below it is counted there."""
    assert sum(len(path.read_text().splitlines()) for path in package.glob("*.py")) < 2_500


PROGRAMS = sorted(
    path for folder in ("bench", "attack", "schedulers") for path in ROOT.glob(f"tests/{folder}/**/*.py")
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_programs_beside_the_tests_find_what_they_import(program: Path) -> None:
    """No test runs them: a module that moved was found out by `make bench` alone."""
    import_module(".".join(program.relative_to(ROOT).with_suffix("").parts))
