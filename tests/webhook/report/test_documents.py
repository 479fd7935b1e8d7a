"""YAML that commands print, and who reads it."""

from __future__ import annotations

import pytest
import yaml

from webhook.files.yaml_documents import load_all
from webhook.report.documents import as_yaml


@pytest.mark.parametrize(
    "text",
    ["08", "1e3", "-1E+5", "12e03", "0o7", "0X1F", "0B1", "y", "N", "on", "1_0", "1:30", "2026-01-01", "="],
)
def test_text_stays_text_for_every_reader(text: str) -> None:
    """`bayplan mutate … | kubectl apply -f -`: kubectl reads the first ten as numbers and booleans without
    quotes, readers of YAML 1.1 the others.
    """
    printed = as_yaml({"value": text, text: "key"})
    assert printed == f"value: '{text}'\n'{text}': key\n"
    assert load_all(printed.encode()) == [yaml.safe_load(printed)] == [{"value": text, text: "key"}]


@pytest.mark.parametrize("text", ["1.2.3", "10.0.0.1", "1e", "e3", "0x", "no one", "8Gi", "2d4890f", "yy"])
def test_text_that_nobody_mistakes_has_no_quotes(text: str) -> None:
    """As people write it."""
    assert as_yaml({"value": text}) == f"value: {text}\n"


def test_a_value_that_a_file_names_twice_is_written_twice() -> None:
    """As kubectl prints it. A policy that changes one of the two would also seem to change the other."""
    (value,) = load_all(b"a: &x {b: 1}\nc: *x\n")
    assert as_yaml(value) == "a:\n  b: 1\nc:\n  b: 1\n"
