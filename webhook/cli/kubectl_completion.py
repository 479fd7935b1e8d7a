"""`kubectl_complete-bayplan`: kubectl runs it to complete the words after `kubectl bayplan`.

The arguments are the words after `bayplan`; the last one is incomplete. The program prints a line for each
completion, with a tab and a help text if there is one, and a last line with a directive of cobra, the
library of kubectl's command line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from webhook.cli.completion import FILES, FOLDER
from webhook.cli.main import parser

FILE_NAMES, NOTHING_MORE = ":0", ":4"
"""Cobra's directives ShellCompDirectiveDefault (the shell offers file names too) and
ShellCompDirectiveNoFileComp (it does not).
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the completions of the last word; only the directive if there are none."""
    words = list(sys.argv[1:] if argv is None else argv) or [""]
    lines, files = completions(words)
    sys.stdout.write("".join(f"{line}\n" for line in (*lines, FILE_NAMES if files else NOTHING_MORE)))
    return 0


def completions(words: Sequence[str]) -> tuple[list[str], bool]:
    """Returns the lines of completions for the last word, and whether the shell should offer file names
    too.
    """
    *before, word = words
    command, option = _parsed(before)
    if word.startswith("-"):
        return sorted(name for name in command._option_string_actions if name.startswith(word)), False
    wanted = option or _argument(command)
    if wanted is None:
        return [], False
    lines = [line for line in _values(wanted) if line.startswith(word)]
    return lines, wanted.metavar in (*FILES, FOLDER)


def _parsed(words: Sequence[str]) -> tuple[argparse.ArgumentParser, argparse.Action | None]:
    """Returns the parser of the command or verb in `words`, and the option that expects a value
    next, if any.
    """
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
    """Returns the first positional argument: the choice of a verb, or a value such as a name; None if
    there is none.
    """
    return next((action for action in command._actions if not action.option_strings), None)


def _values(action: argparse.Action) -> Iterator[str]:
    """Yields the possible values of an argument; verbs with their help."""
    if isinstance(action, argparse._SubParsersAction):
        for verb in action._choices_actions:
            yield f"{verb.dest}\t{verb.help}"
        return
    yield from map(str, action.choices or ())
