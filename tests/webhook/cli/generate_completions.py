"""Write webhook/cli/completions from the parsers: `python -m tests.webhook.cli.generate_completions`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

from webhook.cli.completion import FILES, FOLDER, SCRIPTS, SHELLS
from webhook.cli.main import COMMANDS, parser


def options(of: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options and arguments of a parser and of its subcommands."""
    for action in of._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for subcommand in action.choices.values():
                yield from options(subcommand)


def scripts() -> dict[str, str]:
    """The script of each shell, by the name of its file."""
    top = parser(*COMMANDS)
    for action in options(top):
        if action.metavar in (*FILES, FOLDER):
            action.complete = shtab.DIRECTORY if action.metavar == FOLDER else shtab.FILE  # type: ignore[attr-defined]
    return {f"bayplan.{shell}": shtab.complete(top, shell=shell) + "\n" for shell in SHELLS}


if __name__ == "__main__":
    SCRIPTS.mkdir(exist_ok=True)
    for name, script in scripts().items():
        (SCRIPTS / name).write_text(script)
