"""Write the functions in docs/cel.md from the table in the code: `python -m tests.docs.generate_cel`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tests.docs.markdown import below, table
from webhook.policy.functions.table import FUNCTIONS

PAGE = Path(__file__).parents[2] / "docs" / "cel.md"
MARK = "<!-- functions -->\n"
SENTENCE = re.compile(r"^(.*?(?:[.;]|$))(?:\s|$)", re.DOTALL)


def page() -> str:
    """The page with its table."""
    return below(PAGE, MARK, table(("call", "result"), map(row, sorted(FUNCTIONS))))


def row(name: str) -> tuple[str, str]:
    """One function, by the first paragraph of its docstring: a call, then its result."""
    text = " ".join((inspect.getdoc(FUNCTIONS[name].call) or "").split("\n\n")[0].split())
    parts = re.match(r"`([^`]+)`:? ?(.*)", text)
    assert parts is not None, f"{name}: the docstring begins with no call"
    return f"`{parts[1]}`", parts[2]


if __name__ == "__main__":
    PAGE.write_text(page())
