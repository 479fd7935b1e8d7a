"""Shells complete what the command line takes."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.webhook.cli.generate_completions import scripts
from webhook.cli.completion import SCRIPTS


def test_the_scripts_are_what_the_parsers_give() -> None:
    """A new option is completed, or this fails until the scripts are written again."""
    made = scripts()
    assert {path.name: path.read_text() for path in SCRIPTS.iterdir()} == made


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        (["bayplan", "si"], ["simulate"]),
        (["bayplan", "plan", "--mo"], ["--mode"]),
        (["bayplan", "serve", "--fence", "t"], ["taint"]),
        (["bayplan", "certs", "ren"], ["renew"]),
    ],
)
def test_bash_completes_commands_options_and_values(line: list[str], completions: list[str]) -> None:
    """By the script alone; no program of Bayplan runs."""
    bash = shutil.which("bash")
    assert bash is not None
    words = " ".join(f"'{word}'" for word in line)
    script = f"""
        source {SCRIPTS / "bayplan.bash"}
        COMP_WORDS=({words}); COMP_CWORD={len(line) - 1};
        _shtab_bayplan bayplan "{line[-1]}" "{line[-2]}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=True)
    assert [word.strip() for word in done.stdout.split()] == completions
