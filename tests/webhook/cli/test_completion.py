"""Shells complete what the command line takes."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.webhook.cli.generate_completions import scripts
from webhook.cli import kubectl_completion
from webhook.cli.completion import SCRIPTS
from webhook.cli.main import COMMANDS


def test_the_scripts_are_what_the_parsers_give() -> None:
    """A new option is completed, or this fails until the scripts are written again."""
    generated = scripts()
    assert {path.name: path.read_text() for path in SCRIPTS.iterdir()} == generated


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


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["si"], ["simulate\tsimulate a month of a cluster under several placement strategies", ":4"]),
        (["plan", "--mo"], ["--mode", ":4"]),
        (["plan", "--reserve", "d"], ["domain", ":4"]),
        (["simulate", "--strategy", "auto", "no"], ["nodes", "nodes-moves", ":4"]),
        (["reservations", "sh"], ["show\tshow the reservations of gangs", ":4"]),
        (["reservations", "list", "-o", "w"], ["wide", ":4"]),
        (["report", "-f", "job"], [":0"]),
        (["replay", ""], [":0"]),
        (["queue", ""], [":4"]),
        (["queue", "--watch", ""], [":4"]),
        (["nothing", "-"], ["--help", "--version", "-h", ":4"]),
    ],
)
def test_kubectl_is_told_how_a_line_goes_on(
    words: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for each way, and at the end whether the shell adds names of files."""
    assert kubectl_completion.main(words) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_kubectl_is_told_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing is written yet."""
    kubectl_completion.main([])
    *lines, directive = capsys.readouterr().out.splitlines()
    assert [line.partition("\t")[0] for line in lines] == list(COMMANDS)
    assert directive == ":4"
