"""The table of keys, from which the reference is made, is what code and policies read and write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from webhook.workloads.key_table.known_keys import KNOWN_KEYS
from webhook.workloads.keys.topology_keys import KEYS

ROOT = Path(__file__).parents[2]
DOMAINS = (
    r"bayplan\.dev|kai\.scheduler|kueue\.x-k8s\.io|topology\.scheduler|scheduling\.run\.ai|runai|gpu\.topology"
    r"|(?:alpha\.)?jobset\.sigs\.k8s\.io|leaderworkerset\.sigs\.k8s\.io|scheduling\.(?:x-)?k8s\.io"
    r"|networking\.gke\.io|k8s\.v1\.cni\.cncf\.io"
)
KEY = re.compile(rf"""["'](?P<key>(?:{DOMAINS})/[a-z][a-zA-Z0-9._-]*[a-z0-9])["']""")
VERSION = re.compile(r"/v\d+(alpha\d+|beta\d+)?$")
OTHERS = ("misspelt_keys.py", "scheduler_facts.py")
"""They name keys of other systems that are left alone."""
NAMES = {key.name for key in KNOWN_KEYS}


def literals() -> Iterator[tuple[str, str]]:
    """Each key that stands as text in the code or in an expression of a policy, with its file."""
    files = [
        *ROOT.glob("webhook/**/*.py"),
        *ROOT.glob("planner/**/*.py"),
        *ROOT.glob("policies/*/policy.yaml"),
    ]
    for path in files:
        text = path.read_text()
        for key in KEY.finditer(text):
            if not VERSION.search(key["key"]) and path.name not in OTHERS:
                yield key["key"], str(path.relative_to(ROOT))


def test_every_key_in_code_and_policies_is_in_the_table() -> None:
    """Who reads or writes a new key adds a row to webhook/workloads/key_table/known_keys.py."""
    assert sorted({(key, file) for key, file in literals() if key not in NAMES}) == []


def test_the_table_has_no_key_that_nobody_reads_or_writes() -> None:
    """Every name stands somewhere else too; those of `gfd-affinity` are put together there."""
    sources = [
        *ROOT.glob("webhook/**/*.py"),
        *ROOT.glob("planner/**/*.py"),
        *ROOT.glob("policies/*/policy.yaml"),
    ]
    text = "\n".join(path.read_text() for path in sources if path.name != "known_keys.py")
    assert [name for name in sorted(NAMES) if name not in text] == []


def test_no_row_stands_twice_and_every_topology_key_has_one() -> None:
    """A name once in each form."""
    rows = [(key.name, key.form) for key in KNOWN_KEYS]
    assert len(rows) == len(set(rows))
    assert {key.name for key in KEYS} <= NAMES
