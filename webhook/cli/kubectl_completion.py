"""`kubectl_complete-bayplan`: what kubectl asks for at each Tab behind `kubectl bayplan`.

It is called with the words behind `bayplan`, the last of which is being written, and prints a line for each
way to go on, with its help behind a tab, and at the end what kubectl adds (cobra's directives).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from webhook.cli.completion import FILES, FOLDER
from webhook.cli.main import parser

FILE_NAMES, NOTHING_MORE = ":0", ":4"
"""Cobra's directives: the shell adds names of files, or adds nothing."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the completions. What cannot be gone on from has none, and says nothing."""
    words = list(sys.argv[1:] if argv is None else argv) or [""]
    lines, files = completions(words)
    sys.stdout.write("".join(f"{line}\n" for line in (*lines, FILE_NAMES if files else NOTHING_MORE)))
    return 0


def completions(words: Sequence[str]) -> tuple[list[str], bool]:
    """The lines for the last word, and whether a file may stand there too."""
    *before, word = words
    command, option = _reached(before)
    if word.startswith("-"):
        return sorted(name for name in command._option_string_actions if name.startswith(word)), False
    wanted = option or _argument(command)
    if wanted is None:
        return [], False
    lines = [line for line in _values(wanted) if line.startswith(word)]
    return lines, wanted.metavar in (*FILES, FOLDER)


def _reached(words: Sequence[str]) -> tuple[argparse.ArgumentParser, argparse.Action | None]:
    """The parser of the command that is being written, and the option that wants a value, if one does."""
    command, option = parser(*words[:1]), None
    for word in words:
        if word.startswith("-"):
            action = command._option_string_actions.get(word)
            option = action if action is not None and action.nargs != 0 else None
        elif option is not None:
            option = option if option.nargs in ("+", "*") else None
        else:
            verbs = _argument(command)
            chosen = verbs.choices.get(word) if isinstance(verbs, argparse._SubParsersAction) else None
            command = chosen or command
    return command, option


def _argument(command: argparse.ArgumentParser) -> argparse.Action | None:
    """The first argument that is no option: a verb, or what the command is about."""
    return next((action for action in command._actions if not action.option_strings), None)


def _values(action: argparse.Action) -> Iterator[str]:
    """The values that are known ahead; of verbs with their help."""
    if isinstance(action, argparse._SubParsersAction):
        for verb in action._choices_actions:
            yield f"{verb.dest}\t{verb.help}"
        return
    yield from map(str, action.choices or ())
