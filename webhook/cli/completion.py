"""`bayplan completion`: prints a shell script that completes commands, options and their values."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from webhook.cli.common.parsers import Subparsers, subcommand

EPILOG = """examples:
  bayplan completion bash > ~/.local/share/bash-completion/completions/bayplan
  bayplan completion zsh > ~/.zfunc/_bayplan      with ~/.zfunc in fpath, before compinit
  bayplan completion fish > ~/.config/fish/completions/bayplan.fish

kubectl's own completion also completes `kubectl bayplan`. It calls kubectl_complete-bayplan, which is
installed with bayplan and must be on the PATH.

exit status: 0 done, 2 bad input or usage
"""


SHELLS = ("bash", "zsh", "fish")


FILES = ("CLUSTER", "MANIFEST", "POLICIES", "PATH", "FILE", "FILE.svg", "JOURNAL")
"""The metavars of options and arguments whose value is a file, or a folder of files."""


FOLDER = "DIR"
"""The metavar of options and arguments whose value is a folder."""


SCRIPTS = Path(__file__).parent / "completions"
"""The folder of the scripts. `python -m tests.webhook.cli.generate_completions` writes them in advance,
because their generator is not installed with Bayplan. They complete words without starting Python.
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `completion`."""
    parser = subcommand(
        subparsers,
        "completion",
        description="Print a shell completion script for commands, options and their values.",
        epilog=EPILOG,
    )
    parser.add_argument("shell", choices=SHELLS, help="%(choices)s")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the script for a shell."""
    sys.stdout.write((SCRIPTS / f"bayplan.{args.shell}").read_text())
    return 0
