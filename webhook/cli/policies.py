"""`bayplan policies list|show|check|parameters`: what a policy set holds and is told, and if it loads."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from planner.model.words import listed
from webhook.admission.environment import Environment
from webhook.admission.parameters import NO_PARAMETERS
from webhook.admission.setting_keys import SETTING_KEYS
from webhook.cli import inputs
from webhook.cli.parsers import Subparsers, subcommand, verb
from webhook.policy.engine.match import MatchResources, ResourceRule
from webhook.policy.engine.model import MutatingPolicy, Policy, PolicyBinding, PolicySet
from webhook.policy.testing.coverage import expressions_of
from webhook.report.documents import as_yaml
from webhook.server.cluster_files import read_environment

WIDE = 400
"""Columns where no terminal limits them: one line a policy, for grep."""


MOST_SHOWN = 4
"""Resources of a rule that the list names; more would break its lines."""


EPILOG = """examples:
  bayplan policies check policies/          every problem, with file, line and column; for pre-commit and CI
  bayplan policies list policies/           what runs, in the order in which it runs
  bayplan policies show policies/ --name scheduler-name
  bayplan policies check policies/ -c bayplan-parameters.yaml   with the ConfigMap that goes into the cluster
  bayplan policies parameters -c cluster.yaml -n research       each parameter: its value there, from where

exit status: 0; 2 where the policies do not load, or a parameter is wrong
"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `policies`."""
    parser = subcommand(
        subparsers,
        "policies",
        description="What a policy set holds, and whether it would load.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|check|parameters")
    for name, text in (
        ("list", "one line a policy, in the order in which they run"),
        ("show", "a policy with all its expressions"),
        ("check", "load as the webhook would and show every problem"),
        ("parameters", "what is in force for a namespace, and from where"),
    ):
        action = verb(actions, name, text, EPILOG)
        action.add_argument(
            "paths",
            metavar="PATH",
            nargs="*",
            help="policy files or folders (default: the policies that ship with Bayplan)",
        )
        if name in ("check", "parameters"):
            inputs.add_cluster(action, required=False)
        if name == "parameters":
            action.add_argument("-n", "--namespace", default="", help="with the keys of this namespace")
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
        around = inputs.in_force(read_environment(args.cluster), _ruled(policies))
        if args.action == "parameters":
            _parameters(policies, around, args.namespace)
        else:
            _check(policies, around)
    return 0


def _ruled(policies: PolicySet) -> PolicySet:
    """A ConfigMap that is given alone is held to the rules of the policies that ship."""
    return policies if policies.policies else replace(policies, rules=inputs.policies(()).rules)


def _check(policies: PolicySet, around: Environment) -> None:
    """All is well; what is odd about the parameters is told all the same."""
    parameters = around.parameters or NO_PARAMETERS
    for warning in parameters.warnings(around.namespaces):
        inputs.note(f"Warning: {warning}")
    bindings = sum(bool(binding.name) for policy in policies.policies for binding in policy.bindings)
    objects = len(policies.params) + (around.configured is not None)
    sys.stdout.write(
        f"{len(policies.policies)} policies, {bindings} bindings, {objects} parameter objects: all well"
        f" (revision {policies.revision})\n"
    )


def _parameters(policies: PolicySet, around: Environment, namespace: str) -> None:
    """A line for each key that there is: the value in force, and the ConfigMap that says so."""
    parameters = around.parameters or NO_PARAMETERS
    texts, settings = parameters.texts.of(namespace), around.settings(namespace)
    rules = {**_ruled(policies).rules.by_key, **{name: row.schema for name, row in SETTING_KEYS.items()}}
    values = {name: str(rule.get("default", "")) for name, rule in rules.items()}
    values |= {**texts, **{name: row.show(settings) for name, row in SETTING_KEYS.items()}}
    table = _table("PARAMETER", "VALUE", "FROM")
    for name, value in sorted(values.items()):
        key = f"namespace.{namespace}.{name}"
        origin = parameters.origin(key) or parameters.origin(name) or "default"
        table.add_row(*map(Text, (name, value or '""', origin)))
    _console().print(table)


def _list(policies: PolicySet) -> None:
    console, table = _console(), _table("POLICY", "KIND", "MATCHES", "READS", "BINDINGS", "FILE")
    for policy in policies.policies:
        kind = "mutating" if isinstance(policy, MutatingPolicy) else "validating"
        reads = ", ".join(sorted(policy.uses & {"gang", "plan", "cluster"}))
        bindings = ", ".join(_binding(binding) for binding in policy.bindings)
        cells = (policy.name, kind, _matches(policy.match), reads, bindings, policy.file)
        table.add_row(*map(Text, cells))
    console.print(table)
    console.print(f"revision {policies.revision}", highlight=False)


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=WIDE)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=title in ("POLICY", "KIND", "PARAMETER"), overflow="fold")
    return table


def _binding(binding: PolicyBinding) -> str:
    if not binding.name:
        return "(unbound)"
    actions = "" if binding.actions == ("Deny",) else f" [{', '.join(binding.actions)}]"
    return f"{binding.name}{actions}"


def _matches(match: MatchResources) -> str:
    return "; ".join(map(_rule, match.rules))


def _rule(rule: ResourceRule) -> str:
    """`CREATE pods`; of many resources the first few and the number of the others."""
    return f"{','.join(rule.operations)} {listed(rule.resources, MOST_SHOWN)}"


def _show(policies: PolicySet, name: str | None) -> int:
    chosen = [policy for policy in policies.policies if name in (None, policy.name)]
    if not chosen:
        names = ", ".join(policy.name for policy in policies.policies)
        inputs.note(f"bayplan: no policy {name!r}; known: {names}")
        return 2
    sys.stdout.write("---\n".join(as_yaml(_described(policy)) for policy in chosen))
    return 0


def _described(policy: Policy) -> dict[str, object]:
    """A policy as a person reads it: every expression under its field."""
    shown = {
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
    return {key: value for key, value in shown.items() if value not in ("", [], {})}
