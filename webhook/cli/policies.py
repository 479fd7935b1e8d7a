"""`bayplan policies list|show|check`: what a policy set holds, and whether it would load."""

from __future__ import annotations

import argparse
import sys

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from webhook.cli import inputs
from webhook.cli.parsers import Subparsers, subcommand, verb
from webhook.policy.engine.match import MatchResources, ResourceRule
from webhook.policy.engine.model import MutatingPolicy, Policy, PolicyBinding, PolicySet
from webhook.policy.testing.coverage import expressions_of

WIDE = 400
"""Columns where no terminal limits them: one line a policy, for grep."""


MOST_SHOWN = 4


EPILOG = """examples:
  bayplan policies check policies/          every problem, with file, line and column; for pre-commit and CI
  bayplan policies list policies/           what runs, in the order in which it runs
  bayplan policies show policies/ --name scheduler-name

exit status: 0; 2 where the policies do not load
"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `policies`."""
    parser = subcommand(
        subparsers,
        "policies",
        help="list, show or check policies",
        description="What a policy set holds, and whether it would load.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|check")
    for name, text in (
        ("list", "one line a policy, in the order in which they run"),
        ("show", "a policy with all its expressions"),
        ("check", "load as the webhook would and show every problem"),
    ):
        action = verb(actions, name, text, EPILOG)
        action.add_argument(
            "paths",
            metavar="PATH",
            nargs="*",
            help="policy files or folders (default: the policies that ship with Bayplan)",
        )
        if name == "show":
            action.add_argument("--name", help="only this policy")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Load and print. Raises PolicyError for policies that do not load."""
    policies = inputs.policies(args.paths)
    if args.action == "list":
        _list(policies)
    elif args.action == "show":
        return _show(policies, args.name)
    else:
        bindings = sum(bool(binding.name) for policy in policies.policies for binding in policy.bindings)
        count = len(policies.policies)
        sys.stdout.write(
            f"{count} policies, {bindings} bindings, {len(policies.params)} parameter objects: all well"
            f" (revision {policies.revision})\n"
        )
    return 0


def _list(policies: PolicySet) -> None:
    console = Console() if sys.stdout.isatty() else Console(width=WIDE)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("POLICY", "KIND", "MATCHES", "READS", "BINDINGS", "FILE"):
        table.add_column(title, no_wrap=title in ("POLICY", "KIND"), overflow="fold")
    for policy in policies.policies:
        kind = "mutating" if isinstance(policy, MutatingPolicy) else "validating"
        reads = ", ".join(sorted(policy.uses & {"gang", "plan", "cluster"}))
        bindings = ", ".join(_binding(binding) for binding in policy.bindings)
        cells = (policy.name, kind, _matches(policy.match), reads, bindings, policy.file)
        table.add_row(*map(Text, cells))
    console.print(table)
    console.print(f"revision {policies.revision}", highlight=False)


def _binding(binding: PolicyBinding) -> str:
    if not binding.name:
        return "(unbound)"
    actions = "" if binding.actions == ("Deny",) else f" [{', '.join(binding.actions)}]"
    return f"{binding.name}{actions}"


def _matches(match: MatchResources) -> str:
    return "; ".join(map(_rule, match.rules))


def _rule(rule: ResourceRule) -> str:
    """`CREATE pods`; of many resources the first few and the number of the others."""
    shown, others = rule.resources[:MOST_SHOWN], len(rule.resources) - MOST_SHOWN
    remainder = f" and {others} more" if others > 0 else ""
    return f"{','.join(rule.operations)} {', '.join(shown)}{remainder}"


def _show(policies: PolicySet, name: str | None) -> int:
    chosen = [policy for policy in policies.policies if name in (None, policy.name)]
    if not chosen:
        known = ", ".join(policy.name for policy in policies.policies)
        inputs.note(f"bayplan: no policy {name!r}; known: {known}")
        return 2
    documents = [_described(policy) for policy in chosen]
    sys.stdout.write(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=110))
    return 0


def _described(policy: Policy) -> dict[str, object]:
    """A policy as a person reads it: every expression under its field."""
    known = {
        "name": policy.name,
        "kind": f"{policy.api_version} {policy.kind}",
        "file": policy.file,
        "description": policy.description,
        "matches": _matches(policy.match),
        "runsOnTemplates": policy.on_templates,
        "failurePolicy": "Ignore" if policy.ignore_failure else "Fail",
        "params": f"{policy.param_kind.api_version} {policy.param_kind.kind}" if policy.param_kind else "",
        "reads": sorted(policy.uses),
        "bindings": [_binding(binding) for binding in policy.bindings],
        "variables": [row.name for row in policy.variables],
        "expressions": {row.label: row.program.text.strip() for row in expressions_of(policy)},
    }
    return {key: value for key, value in known.items() if value not in ("", [], {})}
