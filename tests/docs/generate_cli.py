"""Write docs/reference/cli.md from the parsers: `python -m tests.docs.generate_cli`.

Not from argparse's own help, which differs from one Python to the next.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from tests.docs.markdown import code, fenced, table
from webhook.cli.main import COMMANDS, EPILOG, parser

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"

HEADER = """\
# Commands

This page is generated from the program by `python -m tests.docs.generate_cli`. `--help` prints the
same text, and [shell completion](../start/install.md#shell-completion) completes commands and options. Each
command is also available as `kubectl bayplan COMMAND`.
"""


def page() -> str:
    """The whole page."""
    top = parser(*COMMANDS)
    (commands,) = _verbs(top)
    overview = table(
        ("command", "what it does"),
        ((f"[{name}](#bayplan-{name})", line) for name, (_, line) in COMMANDS.items()),
    )
    parts = [HEADER, overview, fenced(EPILOG)]
    for name in COMMANDS:
        parts += section(commands.choices[name])
    return "\n".join(parts)


def section(command: argparse.ArgumentParser) -> Iterator[str]:
    """A command: what it does, its arguments and options, its verbs, its examples."""
    yield f"## {command.prog}\n"
    yield f"{command.description}\n"
    yield from _options(command)
    for verbs in _verbs(command):
        for verb in verbs.choices.values():
            yield f"### {verb.prog}\n"
            yield f"{verb.description}\n"
            yield from _options(verb)
    yield fenced(command.epilog or "")


def _verbs(command: argparse.ArgumentParser) -> list[argparse._SubParsersAction[argparse.ArgumentParser]]:
    return [action for action in command._actions if isinstance(action, argparse._SubParsersAction)]


def _options(command: argparse.ArgumentParser) -> Iterator[str]:
    """The table of arguments and options; nothing where there is only --help."""
    skipped = (argparse._HelpAction, argparse._SubParsersAction)
    rows = [_row(command, action) for action in command._actions if not isinstance(action, skipped)]
    if rows:
        yield table(("option", "what it does"), rows)


def _row(command: argparse.ArgumentParser, action: argparse.Action) -> tuple[str, str]:
    words = f"{_value(action)}" if action.nargs != 0 else ""
    names = [f"{name} {words}".strip() for name in action.option_strings] or [words]
    help_text = command._get_formatter()._expand_help(action) if action.help else ""
    must = "required" if action.required and action.option_strings else ""
    choices = f"one of {code(map(str, action.choices))}" if action.choices else ""
    default = f"default `{action.default}`" if _is_told(action, help_text) else ""
    return code(names), "; ".join(filter(None, (help_text, choices, default, must)))


def _value(action: argparse.Action) -> str:
    """What stands for the value of an option, or the name of an argument."""
    names = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    shown = names if isinstance(names, str) else " ".join(names)
    return {"+": f"{shown} …", "*": f"[{shown} …]", "?": f"[{shown}]"}.get(str(action.nargs), shown)


def _is_told(action: argparse.Action, help_text: str) -> bool:
    """Whether there is a default that the help does not name itself."""
    return (
        bool(action.default)
        and action.default != argparse.SUPPRESS
        and "default" not in help_text
        and action.nargs != 0
        and isinstance(action.default, (str, int, float))
    )


if __name__ == "__main__":
    PAGE.write_text(page())
