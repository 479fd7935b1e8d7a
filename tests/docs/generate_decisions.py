"""Write docs/decisions/README.md, the list of decisions: `python -m tests.docs.generate_decisions`."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "decisions" / "README.md"

HEADER = """\
# Decisions

Each page states one decision: its context, the decision, and what follows from it. Pages are in the order
of their decisions. A page that a later decision replaced was removed, or joined to the page of that decision,
so some numbers are not used. `python -m tests.docs.generate_decisions` writes this list.

"""


def page() -> str:
    """The whole page."""
    files = sorted(PAGE.parent.glob("[0-9]*.md"))
    titles = [(file.name, file.read_text().partition("\n")[0].removeprefix("# ")) for file in files]
    return HEADER + "".join(f"- [{title}]({name})\n" for name, title in titles)


if __name__ == "__main__":
    PAGE.write_text(page())
