"""`bayplan` as a command of the tests."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.cli.main import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `bayplan` and give exit status, output and errors."""

    def running(*words: str) -> tuple[int, str, str]:
        status = main(words)
        out, err = capsys.readouterr()
        return status, out, err

    return running
