"""The table of settings, the schema, the files that ship and the reference page say the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.docs.generate_parameters import ROOT, SCHEMA, schema
from webhook.admission.configuration.setting_keys import SETTING_KEYS, SettingKey
from webhook.admission.configuration.settings import DEFAULT_SETTINGS
from webhook.policy.model.parameters import ParameterRules


def test_the_schema_is_what_the_table_gives() -> None:
    """`python -m tests.docs.generate_parameters` writes it, and the page."""
    assert SCHEMA.read_text() == schema()


@pytest.mark.parametrize("row", SETTING_KEYS.values(), ids=SETTING_KEYS.keys())
def test_each_setting_takes_its_values_and_shows_them_again(row: SettingKey) -> None:
    """Its default among them, which changes nothing."""
    assert row.take(DEFAULT_SETTINGS, row.default) == DEFAULT_SETTINGS
    for text in (*row.values, row.default):
        assert not row.fault(text)
        assert row.show(row.take(DEFAULT_SETTINGS, text)) == text


@given(st.sampled_from(sorted(SETTING_KEYS)), st.text(st.sampled_from("0123456789.autonesd-"), max_size=6))
def test_the_schema_and_the_table_agree_on_every_text(name: str, text: str) -> None:
    """What one takes the other takes, and what is taken can be read."""
    row = SETTING_KEYS[name]
    ruled_out = ParameterRules({name: row.schema}, True).fault(name, text)
    assert bool(ruled_out) == bool(row.fault(text))
    if not ruled_out:
        row.take(DEFAULT_SETTINGS, text)


@pytest.mark.parametrize("file", ["policies/parameters.yaml", "manifests/38-parameters.yaml"])
def test_the_files_that_ship_name_every_setting(file: str) -> None:
    """As a comment with the default, or as a key."""
    lines = (ROOT / file).read_text()
    for name, row in SETTING_KEYS.items():
        assert re.search(rf'^  (# )?{re.escape(name)}: "?\S+', lines, re.MULTILINE), name
        commented = re.search(rf'^  # {re.escape(name)}: "?([^"\n]*)"?$', lines, re.MULTILINE)
        shipped = "audit" if (file, name) == ("manifests/38-parameters.yaml", "mode") else row.default
        assert commented is None or commented[1] == shipped, name
