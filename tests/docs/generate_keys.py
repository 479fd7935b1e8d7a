"""Write docs/reference/keys.md from the table of keys: `python -m tests.docs.generate_keys`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.docs.markdown import code, table
from webhook.workloads.keys.known_keys import KNOWN_KEYS, KnownKey

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "keys.md"

HEADER = """\
# Keys that are read and written

Written by `python -m tests.docs.generate_keys` from the table `webhook/workloads/keys/known_keys.py`. A key
that is nearly one of Bayplan's, KAI's, Kueue's or nod-ai's gets a warning with the right one
(`key-spelling`). Of labels that a Topology names as its levels, any may be read; they are not listed, nor are
the label presets of `bayplan topology propose`.
"""

SECTIONS = (
    ("Bayplan's own", ("bayplan.dev",)),
    ("KAI Scheduler and Run:ai", ("kai.scheduler", "scheduling.run.ai", "runai", "")),
    ("Kueue", ("kueue.x-k8s.io",)),
    ("nod-ai's leaf-spine scheduler", ("topology.scheduler",)),
    ("NVIDIA's labels and those of GPUs' links", ("nvidia.com", "gpu.topology")),
)
"""Titles with the domains of their keys; all other domains come last."""


def section(title: str, keys: Iterable[KnownKey]) -> str:
    """A heading and the table of its keys, by name."""
    rows = (row(key) for key in sorted(keys, key=lambda key: (key.name, key.form)))
    return f"\n## {title}\n\n{table(('key', 'what', 'on', 'use', 'says'), rows)}"


def row(key: KnownKey) -> tuple[str, ...]:
    """One line of a table."""
    values = f": {code(key.values)}" if key.values else ""
    return f"`{key.name}`", key.form, key.place, key.use, f"{key.says}{values}"


def page() -> str:
    """The whole page."""
    domains_of_sections = {domain for _, domains in SECTIONS for domain in domains}
    parts = [
        section(title, (key for key in KNOWN_KEYS if domain_of(key) in domains))
        for title, domains in SECTIONS
    ]
    others = section("Others", (key for key in KNOWN_KEYS if domain_of(key) not in domains_of_sections))
    return "".join((HEADER, *parts, others))


def domain_of(key: KnownKey) -> str:
    """What stands before the slash; "" where nothing does."""
    return key.name.rpartition("/")[0]


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
