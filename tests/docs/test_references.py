"""The references are what the code says, and the code says nothing that is in none of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import generate_metrics, generate_policies, generate_reasons
from tests.docs.reason_words import ANSWERS, EVENTS, MOVES, NOTES, REFUSALS
from tests.docs.references import REFERENCES
from webhook.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", REFERENCES, ids=lambda page: page.name)
def test_each_reference_is_what_its_generator_writes(page: Path) -> None:
    """`python -m tests.docs.references` writes all of them."""
    assert page.read_text() == REFERENCES[page]()


def test_every_page_of_the_reference_is_generated() -> None:
    """None is kept by hand beside the others."""
    assert {page for page in REFERENCES if page.parent.name == "reference"} == set(
        (ROOT / "docs" / "reference").glob("*.md")
    )


def test_every_command_has_a_section() -> None:
    """Under its own name."""
    text = (ROOT / "docs" / "reference" / "cli.md").read_text()
    assert [name for name in COMMANDS if f"\n## bayplan {name}\n" not in text] == []


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("answers", set(ANSWERS)),
        ("refusals", {name for name, _ in REFUSALS}),
        ("events", set(EVENTS)),
        ("notes", set(NOTES)),
        ("moves", set(MOVES)),
    ],
)
def test_every_reason_in_the_code_has_words_and_no_other(kind: str, words: set[str]) -> None:
    """Who says something new, or stops saying it, mends tests/docs/reason_words.py."""
    assert generate_reasons.said_in_code()[kind] == words


def test_every_policy_has_a_description_and_stands_on_the_page() -> None:
    """Of each folder of policies/, under its heading."""
    text = generate_policies.PAGE.read_text()
    folders = sorted((ROOT / "policies").glob("*/policy.yaml"))
    assert len(folders) > 15
    for file in folders:
        assert f"\n## {file.parent.name}\n" in text
    assert "| `` |" not in text
    assert "|  | writes" not in text


def test_every_metric_says_what_it_tells() -> None:
    """In words, not by its name alone."""
    helps = [
        generate_metrics.family(instrument).documentation for instrument in generate_metrics.instruments()
    ]
    assert len(helps) > 20
    assert all(len(text.split()) >= 3 for text in helps)


def test_every_metric_that_the_code_makes_is_on_the_page() -> None:
    """Those too that only some servers register."""
    constructor = re.compile(r'(?:Counter|Gauge|Histogram)\(\s*"((?:bayplan|topology)_\w+)"')
    with_prefix = re.compile(r'\b(?:counter|gauge)\(\s*"(\w+)"')
    sources = [path.read_text() for path in (ROOT / "webhook").rglob("*.py")]
    names = {name for source in sources for name in constructor.findall(source)}
    names |= {f"bayplan_{name}" for source in sources for name in with_prefix.findall(source)}
    assert len(names) > 20
    assert names <= {
        generate_metrics.family(instrument).name for instrument in generate_metrics.instruments()
    }
