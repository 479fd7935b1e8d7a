"""Write the policies in docs/reference/policies.md: `python -m tests.docs.generate_policies`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.docs.markdown import below, code, table
from webhook.policy.loading.files import load_paths
from webhook.policy.model.policy import MutatingPolicy, Policy

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "policies.md"
MARK = "<!-- policies -->\n"
DOES = {"Deny": "refuses", "Warn": "warns", "Audit": "notes in the audit log"}


def page() -> str:
    """The page with its policies, those of a folder together."""
    folders = sorted((ROOT / "policies").glob("*/policy.yaml"))
    return below(PAGE, MARK, "\n".join(section(file) for file in folders))


def section(file: Path) -> str:
    """A folder: the comment at its head, and a row for each policy."""
    policies = load_paths([file]).policies
    columns = ("policy", "what it does", "how", "of", "reads")
    return f"## {file.parent.name}\n\n{head(file.read_text())}\n\n{table(columns, map(row, policies))}"


def head(text: str) -> str:
    """The comment before the first document, as Markdown; its first line begins with the folder's name."""
    lines = text[: text.index("\napiVersion:")].splitlines()
    prose = "\n".join(_parted(line.removeprefix("#").removeprefix(" ") for line in lines))
    prose = re.sub(r"^[\w-]+: (\w)", lambda first: first[1].upper(), prose)
    return re.sub(r"docs/([\w/.-]+\.md)", r"[\1](../\1)", prose)


def _parted(lines: Iterable[str]) -> Iterator[str]:
    """With an empty line where a paragraph, a list or indented lines end, which a comment need not have."""
    former = ""
    for line in lines:
        sort = "list" if line.startswith("- ") else "inside" if line.startswith("  ") else "text"
        if sort == "inside":
            sort = "list" if former == "list" else "code"
        if line and former and sort != former:
            yield ""
        yield f"  {line}" if sort == "code" else line
        former = sort if line else ""


def row(policy: Policy) -> tuple[str, ...]:
    """One policy."""
    effects: Iterator[str] = iter(("writes",))
    if not isinstance(policy, MutatingPolicy):
        effects = iter(dict.fromkeys(DOES[act] for binding in policy.bindings for act in binding.actions))
    resources = (name for rule in policy.match.rules for name in rule.resources)
    of = dict.fromkeys("every kind" if name == "*" else name for name in resources)
    first, others = list(of)[:3], len(of) - 3
    kinds = f"{', '.join(first)} and {others} more kinds" if others > 1 else ", ".join(of)
    reads = code(sorted(policy.uses & {"gang", "plan", "cluster"}))
    return f"`{policy.name}`", policy.description, ", ".join(effects), kinds, reads


if __name__ == "__main__":
    PAGE.write_text(page())
