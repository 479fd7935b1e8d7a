"""Write docs/reference/reasons.md: `python -m tests.docs.generate_reasons`.

What there is comes from the code: every reason of an answer, every refusal of a call with its status, every
event, and the policies that refuse. What each means stands in `reason_words`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.docs.markdown import table
from tests.docs.reason_words import ANSWERS, EVENTS, MOVES, NOTES, REFUSALS
from webhook.policy.engine.model import REASON_CODES, ValidatingPolicy
from webhook.policy.loading.files import load_paths

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "reasons.md"
TOKEN = re.compile(r"(?:[A-Z]+[a-z]+)+")
PLACES = {
    "answers": ("Refusal", "Answer", "replace", "answer_of", "_UnfitPod"),
    "refusals": ("Response", "_refused"),
    "events": ("tell",),
    "notes": ("Note",),
    "moves": ("NoMoves",),
}
"""By what is said, the calls that say it."""

HEADER = """\
# Reasons, refusals and events

Written by `python -m tests.docs.generate_reasons`: the reasons from the code, their meaning from
`tests/docs/reason_words.py`. Every message has the numbers and what would work; this page is for a reason
alone, as metrics, logs and `-o json` show it.
"""


def section(title: str, text: str, columns: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    """A heading, a sentence and a table."""
    return f"## {title}\n\n{text}\n\n{table(tuple(columns), rows)}"


def page() -> str:
    """The whole page."""
    decisions = {decision: place for place, decision in enumerate(("admitted", "queued"))}
    answers = sorted(ANSWERS.items(), key=lambda entry: decisions.get(entry[1][0], len(decisions)))
    return "\n".join(
        (
            HEADER,
            section(
                "Answers about a gang",
                "As `bayplan plan` and `why` tell them with `-o json`, and the log as `planReason`.",
                ("reason", "decision", "what it means", "what to do"),
                ((f"`{name}`", *words) for name, words in answers),
            ),
            section(
                "Refusals at `kubectl apply`",
                "With their HTTP status. In `warn` and `audit` nothing is refused.",
                ("reason", "status", "what it means", "what to do"),
                ((f"`{name}`", str(status), *words) for (name, status), words in REFUSALS.items()),
            ),
            section(
                "Policies that refuse",
                "A policy names itself in its message, with what would work. [All policies](policies.md).",
                ("policy", "what it does"),
                ((f"`{name}`", text) for name, text in refusing().items()),
            ),
            section(
                "Events",
                "On the workload, written by the leader: `kubectl describe job NAME`.",
                ("reason", "what it means", "what to do"),
                ((f"`{name}`", *words) for name, words in EVENTS.items()),
            ),
            section(
                "Warnings about an object that is let in",
                "At `kubectl apply`, and as rules of `bayplan report`.",
                ("rule", "what it means", "what to do"),
                ((f"`{name}`", *words) for name, words in NOTES.items()),
            ),
            section(
                "No moves",
                "What `bayplan defrag` says where it finds none.",
                ("reason", "what it means", "what to do"),
                ((f"`{name}`", *words) for name, words in MOVES.items()),
            ),
        )
    )


def refusing() -> dict[str, str]:
    """The policies that refuse, with their description."""
    return {
        policy.name: policy.description
        for policy in load_paths([ROOT / "policies"]).policies
        if isinstance(policy, ValidatingPolicy)
        and any("Deny" in binding.actions for binding in policy.bindings)
    }


@cache
def said_in_code() -> Mapping[str, set[str]]:
    """Every reason in the code, by what says it."""
    reasons: dict[str, set[str]] = defaultdict(set)
    for tree in (*_trees("planner"), *_trees("webhook")):
        constants = dict(_constants(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                for kind in (kind for kind, names in PLACES.items() if _called(node) in names):
                    reasons[kind] |= set(_reasons(node, constants))
            elif isinstance(node, ast.FunctionDef):
                for kind in (kind for kind, names in PLACES.items() if node.name in names):
                    reasons[kind] |= {
                        text for value in node.args.defaults for text in _tokens(value, constants)
                    }
            elif isinstance(node, ast.Assign) and "reason" in set(_targets(node)):
                reasons["answers"] |= set(_tokens(_first(node.value), constants))
    reasons["refusals"] |= {row for row in REASON_CODES if row in {name for name, _ in REFUSALS}}
    return reasons


def _trees(folder: str) -> Iterator[ast.Module]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        if "cli" not in path.parts:
            yield ast.parse(path.read_text())


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _reasons(node: ast.Call, constants: Mapping[str, str]) -> Iterator[str]:
    """Of the argument `reason`, or else of the first that is a token."""
    keywords = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
    positional = [] if _called(node) in ("Answer", "replace", "Response") else node.args
    for value in keywords or positional:
        if tokens := tuple(_tokens(value, constants)):
            yield from tokens
            return


def _tokens(value: ast.expr, constants: Mapping[str, str]) -> Iterator[str]:
    choices = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
    for choice in choices:
        text = constants.get(choice.id, "") if isinstance(choice, ast.Name) else getattr(choice, "value", "")
        if isinstance(text, str) and TOKEN.fullmatch(text):
            yield text


def _first(value: ast.expr) -> ast.expr:
    return value.elts[0] if isinstance(value, ast.Tuple) else value


def _targets(node: ast.Assign) -> Iterator[str]:
    for target in node.targets:
        first = target.elts[0] if isinstance(target, ast.Tuple) else target
        yield getattr(first, "id", "")


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                    yield target.id, node.value.value


if __name__ == "__main__":
    PAGE.write_text(page())
