"""What `make attack` makes of the logs of its replicas, and of the tests that are attacks."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from tests.attack import run
from tests.attack.run import logs, of_files

WORDS = "decided research/Job/train in 12 ms\nledger: unavailable; retry\n"


def traceback_of(error: Exception) -> str:
    """The text with which Python reports an error."""
    try:
        raise error
    except type(error):
        return traceback.format_exc()


CHAINED = traceback_of(KeyError("gang")) + "\nDuring handling …\n\n" + traceback_of(SystemError())


@pytest.mark.parametrize(
    ("output", "measured", "holds"),
    [
        (WORDS, "0 tracebacks ", True),
        (WORDS + traceback_of(KeyError("gang")) + WORDS, "1 tracebacks [\"KeyError: 'gang'\"]", False),
        (CHAINED + CHAINED, "4 tracebacks [\"KeyError: 'gang'\", 'SystemError']", False),
    ],
)
def test_tracebacks_are_counted_and_told_by_their_last_lines(output: str, measured: str, holds: bool) -> None:
    """Each kind of error once; what is logged in words is none."""
    line = logs(output)
    assert (line.measured, line.holds) == (measured, holds)


def test_a_line_of_tests_says_how_many_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the options of this tree, which leave the count out where pytest is told twice to be quiet."""
    folder = tmp_path / "tests" / "e2e"
    folder.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-q"\n')
    (folder / "test_good.py").write_text("def test_a(): ...\ndef test_b(): ...\n")
    (folder / "test_bad.py").write_text("def test_c(): assert False\n")
    monkeypatch.setattr(run, "ROOT", tmp_path)
    passing = of_files("passing", ["test_good.py"])
    failing = of_files("failing", ["test_good.py", "test_bad.py"])
    assert (passing.holds, failing.holds) == (True, False)
    assert passing.measured.startswith("2 passed in ")
    assert failing.measured.startswith("1 failed, 2 passed in ")
