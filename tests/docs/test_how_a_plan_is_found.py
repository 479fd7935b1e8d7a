"""docs/how-a-plan-is-found.md is true: its blocks are run one after another and print what is shown."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-a-plan-is-found.md"
BLOCK = re.compile(r"```pycon\n(.*?)```", re.DOTALL)


def test_each_block_prints_what_the_page_shows() -> None:
    """All blocks share their names, as one session at the prompt."""
    session = "\n".join(BLOCK.findall(PAGE.read_text()))
    example = doctest.DocTestParser().get_doctest(session, {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert result.attempted > 20
    assert result.failed == 0, "".join(report)
