"""Write what follows from the table of settings and the schema: `python -m tests.docs.generate_parameters`.

The settings' rules in policies/parameters.schema.json, and docs/reference/parameters.md from all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.docs.markdown import code, table
from webhook.admission.configuration.setting_keys import SETTING_KEYS

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "policies" / "parameters.schema.json"
PAGE = ROOT / "docs" / "reference" / "parameters.md"

HEADER = """\
# Parameters

Written by `python -m tests.docs.generate_parameters` from the table
`webhook/admission/configuration/setting_keys.py` and from `policies/parameters.schema.json`: the keys of the
ConfigMap `bayplan-parameters`. A key with the prefix `namespace.NAME.` applies to that namespace only.
[docs/parameters.md](../parameters.md) says where the ConfigMap is.
"""

ONE_NAMESPACE = {
    "^namespace\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\.": {
        "type": "string",
        "description": "namespace.NAME.KEY: the value of KEY in the namespace NAME.",
    }
}


def schema() -> str:
    """The schema with the settings' rules; those of policies stand in the file itself."""
    document = json.loads(SCHEMA.read_text())
    data = document["properties"]["data"]
    settings = {name: row.schema for name, row in SETTING_KEYS.items()}
    data["properties"] = dict(sorted({**data["properties"], **settings}.items()))
    data["patternProperties"] = ONE_NAMESPACE
    return json.dumps(document, indent=2) + "\n"


def page() -> str:
    """The reference."""
    rules = json.loads(schema())["properties"]["data"]["properties"]
    settings = [(name, rule) for name, rule in rules.items() if name in SETTING_KEYS]
    policies = [(name, rule) for name, rule in rules.items() if name not in SETTING_KEYS]
    return HEADER + section("Bayplan's own settings", settings) + section("What policies read", policies)


def section(title: str, rules: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """A heading and the table of its keys."""
    rows = (row(name, rule) for name, rule in rules)
    return f"\n## {title}\n\n{table(('key', 'default', 'valid', 'what it does'), rows)}"


def row(name: str, rule: Mapping[str, Any]) -> tuple[str, ...]:
    """One line of a table."""
    own = SETTING_KEYS.get(name)
    pattern = (own.form if own else "") or f"`{rule.get('pattern', '')}`"
    valid = code(rule.get("enum", ())) or pattern
    default = f"`{rule['default']}`" if rule["default"] else "empty"
    return f"`{name}`", default, valid, rule["description"]


if __name__ == "__main__":
    SCHEMA.write_text(schema())
    PAGE.write_text(page())
