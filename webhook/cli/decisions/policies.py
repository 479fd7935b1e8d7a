"""`bayplan policies`: lists, shows and checks policies and parameters, and creates new policies."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from planner.model.words import counted, listed
from webhook.admission.configuration.parameters import NO_PARAMETERS
from webhook.admission.configuration.setting_keys import SETTING_KEYS
from webhook.admission.environment import Environment
from webhook.cli.cluster_files.reading import read_environment
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, subcommand, verb
from webhook.cli.decisions.new_policy import KINDS, SCHEMAS, new_policy, schema_text
from webhook.policy.loading.errors import PolicyError, Problem
from webhook.policy.model.match import MatchResources, ResourceRule
from webhook.policy.model.parameters import PARAMETERS, is_parameters
from webhook.policy.model.policy import (
    MutatingPolicy,
    Policy,
    PolicyBinding,
    PolicyException,
    PolicySet,
)
from webhook.policy.model.selectors import EVERYTHING
from webhook.policy.testing.coverage import expressions_of
from webhook.report.documents import as_yaml
from webhook.report.printable import printable

WIDE = 400
"""The width of tables if standard output is not a terminal, in columns: each policy has one line, for
grep.
"""


MOST_SHOWN = 4
"""The maximum number of resources of a rule that the list names; with more, its lines would wrap."""


EPILOG = """examples:
  bayplan policies check policies/          list all problems with file, line and column
  bayplan policies list policies/           list the policies in the order in which they run
  bayplan policies show policies/ --name scheduler-name
  bayplan policies check policies/ -c bayplan-parameters.yaml   check the parameters in this ConfigMap as well
  bayplan policies parameters -c cluster.yaml -n research       list each parameter, its value and source
  bayplan policies new team-label --in policies                 create a folder with a policy and its test
  bayplan policies schema policy > policies/policy.schema.json  write the JSON schema of policy files

exit status: 0 done; 2 the policies do not load, there are none, or a parameter is wrong
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `policies`."""
    parser = subcommand(
        subparsers,
        "policies",
        description="List, show, check or create policies.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="list|show|check|parameters|new|schema"
    )
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
            action.add_argument("-n", "--namespace", default="", help="include the keys of this namespace")
        if name == "show":
            action.add_argument("--name", help="only this policy")
        action.set_defaults(run=run)
    _add_new(verb(actions, "new", "create a folder with a policy and its test", EPILOG))
    _add_schema(verb(actions, "schema", "print the JSON schema of policy or test files, for editors", EPILOG))


def _add_new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the policy and its folder")
    parser.add_argument(
        "--in",
        dest="folder",
        metavar="FOLDER",
        default=".",
        help="where to create the folder (default: the current folder)",
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="validating",
        help="kind of policy: refuse or change objects (default: %(default)s)",
    )
    parser.set_defaults(run=run_new)


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("of", choices=tuple(SCHEMAS), help="%(choices)s")
    parser.set_defaults(run=run_schema)


def run_new(args: argparse.Namespace) -> int:
    """Creates the folder of a new policy. Raises `InputError` for an invalid name, or if the folder
    exists.
    """
    for file in new_policy(args.name, Path(args.folder), args.kind):
        sys.stdout.write(f"{file}\n")
    folder = Path(args.folder, args.name)
    inputs.note(f"try it: bayplan policies check {folder} && bayplan test {folder}")
    return 0


def run_schema(args: argparse.Namespace) -> int:
    """Prints a JSON schema."""
    sys.stdout.write(schema_text(args.of))
    return 0


def run(args: argparse.Namespace) -> int:
    """Loads the policies, and lists, shows or checks them or the parameters.

    Raises `PolicyError` for policies that do not load, `InputError` for invalid parameters.
    """
    policies = inputs.policies(args.paths)
    if args.action == "list":
        _list(policies)
    elif args.action == "show":
        return _show(policies, args.name)
    else:
        environment = inputs.in_force(read_environment(args.cluster), _ruled(policies))
        if args.action == "parameters":
            _parameters(policies, environment, args.namespace)
        else:
            _check(policies, environment, args.paths)
    return 0


def _ruled(policies: PolicySet) -> PolicySet:
    """Returns the policies with the rules by which parameters are checked. If there are no policies, only
    a ConfigMap, these are the rules of the policies that ship with Bayplan.
    """
    return policies if policies.policies else replace(policies, rules=inputs.policies(()).rules)


def _check(policies: PolicySet, environment: Environment, paths: Sequence[str]) -> None:
    """Prints how many policies, bindings, parameter objects and exceptions there are, and warnings about
    parameters and ended exceptions. (Loading has checked the policies already.)

    Raises `PolicyError` if there is nothing to check, because the path is probably wrong then.
    """
    if not policies.policies and not any(map(is_parameters, policies.params)):
        files = counted(len(policies.files), "file")
        message = f"no policy in here ({files} read), and no ConfigMap {PARAMETERS}"
        raise PolicyError([Problem(", ".join(paths), 0, 0, "", "", message)])
    parameters = environment.parameters or NO_PARAMETERS
    for warning in parameters.warnings(environment.namespaces):
        inputs.note(f"Warning: {warning}")
    now = time.time()
    for exemption in policies.exemptions:
        if exemption.is_over(now):
            inputs.note(
                f"Warning: {exemption.file}: PolicyException {exemption.name} ended {exemption.ended},"
                f" and {', '.join(exemption.policies)} apply again; delete it, or set another until"
            )
    exemptions = f", {counted(len(policies.exemptions), 'exception')}" if policies.exemptions else ""
    bindings = sum(bool(binding.name) for policy in policies.policies for binding in policy.bindings)
    objects = len(policies.params) + (environment.configured is not None)
    sys.stdout.write(
        f"{counted(len(policies.policies), 'policy', 'policies')}, {counted(bindings, 'binding')},"
        f" {counted(objects, 'parameter object')}{exemptions}: all well"
        f" (revision {policies.revision})\n"
    )


def _parameters(policies: PolicySet, environment: Environment, namespace: str) -> None:
    """Prints a line for each parameter: the value in force in the namespace, and where it is set."""
    parameters = environment.parameters or NO_PARAMETERS
    texts, settings = parameters.texts.of(namespace), environment.settings(namespace)
    rules = {**_ruled(policies).rules.by_key, **{name: row.schema for name, row in SETTING_KEYS.items()}}
    values = {name: str(rule.get("default", "")) for name, rule in rules.items()}
    values |= {**texts, **{name: row.show(settings) for name, row in SETTING_KEYS.items()}}
    table = _table("PARAMETER", "VALUE", "FROM")
    for name, value in sorted(values.items()):
        key = f"namespace.{namespace}.{name}"
        origin = parameters.origin(key) or parameters.origin(name) or "default"
        table.add_row(*_texts(name, value or '""', origin))
    _console().print(table)


def _list(policies: PolicySet) -> None:
    console, table = _console(), _table("POLICY", "KIND", "MATCHES", "READS", "BINDINGS", "FILE")
    for policy in policies.policies:
        kind = "mutating" if isinstance(policy, MutatingPolicy) else "validating"
        reads = ", ".join(sorted(policy.uses & {"gang", "plan", "cluster"}))
        bindings = ", ".join(_binding(binding) for binding in policy.bindings)
        table.add_row(*_texts(policy.name, kind, _matches(policy.match), reads, bindings, policy.file))
    console.print(table)
    if policies.exemptions:
        console.print(_exemptions(policies.exemptions, time.time()))
    console.print(f"revision {policies.revision}", highlight=False)


def _exemptions(rows: Sequence[PolicyException], now: float) -> Table:
    """Returns a table of the exceptions, ordered by the time at which they end."""
    table = _table("EXCEPTION", "FROM", "FOR", "UNTIL", "REASON", "FILE")
    for row in sorted(rows, key=lambda row: (row.until, row.name)):
        until = f"{row.ended} (ended)" if row.is_over(now) else row.ended
        table.add_row(*_texts(row.name, ", ".join(row.policies), _whom(row), until, row.reason, row.file))
    return table


def _whom(row: PolicyException) -> str:
    """Returns the requests to which an exception applies, in words: the values of each field that selects
    them.
    """
    texts = {
        "namespaces": row.namespaces,
        "kinds": row.kinds,
        "names": row.names,
        "users": row.users,
        "groups": row.groups,
        "labels": () if row.selector is EVERYTHING else ("…",),
        "namespace labels": () if row.namespace_selector is EVERYTHING else ("…",),
        "conditions": tuple(condition.name for condition in row.conditions),
    }
    return "; ".join(f"{name} {', '.join(values)}" for name, values in texts.items() if values)


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=WIDE)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=title in ("POLICY", "KIND", "PARAMETER"), overflow="fold")
    return table


def _texts(*cells: str) -> Iterator[Text]:
    return (Text(printable(cell)) for cell in cells)


def _binding(binding: PolicyBinding) -> str:
    if not binding.name:
        return "(unbound)"
    actions = "" if binding.actions == ("Deny",) else f" [{', '.join(binding.actions)}]"
    return f"{binding.name}{actions}"


def _matches(match: MatchResources) -> str:
    return "; ".join(map(_rule, match.rules))


def _rule(rule: ResourceRule) -> str:
    """Returns a rule as text, such as `CREATE pods`. Of many resources, it has the first few and the
    number of the others.
    """
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
    """Returns the document that `show` prints for a policy, with the text of each expression by its field."""
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
