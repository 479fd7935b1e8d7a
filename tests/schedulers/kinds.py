"""KAI's kinds as the e2e suite writes them (`tests/e2e/crds`), held against the definitions in its source."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import yaml

from tests.e2e.real_kinds import WRITTEN
from tests.schedulers.nodes import HOSTNAME, RACK, ZONE
from tests.schedulers.programs import Source
from tests.schedulers.table import Row
from webhook.cel import CelError, Declarations, compile

FOLDER = "deployments/kai-scheduler/crds"
RULES = "x-kubernetes-validations"
WORDS = frozenset({"description", "additionalPrinterColumns"})
"""What decides nothing of an object."""
IMPLIED = frozenset({"apiVersion", "kind", "metadata"})
"""Fields of every object, which the API server checks where a schema leaves them out, too."""
LEVELS = (
    [{"nodeLabel": ZONE}],
    [{"nodeLabel": ZONE}, {"nodeLabel": RACK}],
    [{"nodeLabel": ZONE}, {"nodeLabel": ZONE}],
    [{"nodeLabel": ZONE}, {"nodeLabel": HOSTNAME}],
    [{"nodeLabel": HOSTNAME}, {"nodeLabel": ZONE}],
    [{"nodeLabel": HOSTNAME}, {"nodeLabel": HOSTNAME}],
    [{"nodeLabel": ZONE, "alias": "zone"}],
)
"""Values for which rules must have the same outcome, each of them old and new."""


def kinds_held_against(source: Source) -> Row:
    """The same fields, validation and defaults; rules in words of their own have the same outcomes."""
    begin = time.monotonic()
    definitions = {}
    for path in sorted((source.home / FOLDER).glob("*.yaml")):
        body = yaml.safe_load(path.read_text())
        definitions[body["metadata"]["name"]] = body
    written = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(WRITTEN.glob("*.yaml"))}
    names = sorted(set(written) & set(definitions))
    unlike = [
        f"{name}{difference}"
        for name in names
        for difference in _differences(written[name]["spec"], definitions[name]["spec"])
    ]
    end = f"{', '.join(names)}: {len(unlike)} differences{': ' if unlike else ''}{'; '.join(unlike)[:600]}"
    name = "KAI's kinds of the e2e tests, and its own"
    return Row(name, f"kai {source.version}", time.monotonic() - begin, end, bool(names) and not unlike)


def _differences(own: Any, other: Any, place: str = "") -> Iterator[str]:
    if isinstance(own, dict) and isinstance(other, dict):
        for key in sorted((own.keys() | other.keys()) - WORDS):
            if key == RULES:
                yield from _outcomes(own.get(key, []), other.get(key, []), place)
            elif key in own and key in other:
                yield from _differences(own[key], other[key], f"{place}.{key}")
            elif not (key in IMPLIED and place.endswith("openAPIV3Schema.properties")):
                yield f"{place}.{key} is in {'ours' if key in own else 'theirs'} alone"
    elif isinstance(own, list) and isinstance(other, list) and len(own) == len(other):
        for index, pair in enumerate(zip(own, other, strict=True)):
            yield from _differences(*pair, f"{place}[{index}]")
    elif own != other:
        yield f"{place}: {own!r} is {other!r} there"


def _outcomes(own: list[Any], other: list[Any], place: str) -> Iterator[str]:
    """Where two lists of rules do not let the same values through."""
    texts = [[rule["rule"] for rule in rules] for rules in (own, other)]
    if sorted(texts[0]) == sorted(texts[1]):
        return
    if not place.endswith(".levels"):
        yield f"{place}: other rules, and no values to try them with"
        return
    for new, old in product(LEVELS, LEVELS):
        own_outcome, other_outcome = (all(_holds(text, new, old) for text in rules) for rules in texts)
        if own_outcome != other_outcome:
            yield f"{place}: {new} after {old} is let through by {'ours' if own_outcome else 'theirs'} alone"


def _holds(text: str, new: Any, old: Any) -> bool:
    rule = compile(text, Declarations(variables={"self": None, "oldSelf": None}))
    try:
        return bool(rule.evaluate({"self": new, "oldSelf": old}))
    except CelError:
        return False
