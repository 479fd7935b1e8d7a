"""Objects that replicas of the release before wrote are objects of this one, and the other way round."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.manifests.releases import ROOT, text_then

FILE = "manifests/20-crds.yaml"


def schemas(text: str) -> dict[str, Any]:
    """The schema of each version of each kind."""
    return {
        f"{body['metadata']['name']}/{version['name']}": version
        for body in yaml.safe_load_all(text)
        for version in body["spec"]["versions"]
    }


def lost(before: Any, after: Any, path: str) -> list[str]:
    """What an object could be by one schema that it may not be by another."""
    if before.get("type") != after.get("type"):
        return [f"{path}: {before.get('type')} became {after.get('type')}"]
    losses = [
        f"{path}: {name} is required" for name in {*after.get("required", ())} - {*before.get("required", ())}
    ]
    if "enum" in after:
        losses += [
            f"{path}: {value} is no longer valid"
            for value in {*before.get("enum", ("any",))} - {*after["enum"]}
        ]
    for bound, tighter in (
        ("minLength", 1),
        ("minItems", 1),
        ("minimum", 1),
        ("maxLength", -1),
        ("maxItems", -1),
    ):
        if bound in after and (bound not in before or (after[bound] - before[bound]) * tighter > 0):
            losses.append(f"{path}: {bound} is {after[bound]}")
    fields = after.get("properties", {})
    for name, schema in before.get("properties", {}).items():
        losses += (
            lost(schema, fields[name], f"{path}.{name}") if name in fields else [f"{path}.{name} is gone"]
        )
    for part in ("items", "additionalProperties"):
        if isinstance(before.get(part), dict):
            losses += lost(before[part], after.get(part) or {}, f"{path}.{part}")
    return losses


def test_the_kinds_changed_by_addition_alone() -> None:
    """No version and no field is gone, none has another type, and nothing more is required: the API server
    stores and serves whatever the release before wrote, and needs no conversion."""
    text = text_then(FILE)
    if text is None:
        pytest.skip("this checkout's history does not reach back to the release before")
    before, after = schemas(text), schemas((ROOT / FILE).read_text())
    assert before.keys() <= after.keys()
    for name, version in before.items():
        assert after[name]["served"]
        assert after[name]["storage"] == version["storage"]
        old, new = (definition["schema"]["openAPIV3Schema"] for definition in (version, after[name]))
        assert lost(old, new, name) == []


@pytest.mark.parametrize(
    ("change", "loss"),
    [
        ({"properties": {}}, "v1.gang is gone"),
        ({"required": ["gang"]}, "v1: gang is required"),
        ({"properties": {"gang": {"type": "integer"}}}, "v1.gang: string became integer"),
        ({"properties": {"gang": {"type": "string", "minLength": 1}}}, "v1.gang: minLength is 1"),
        ({"properties": {"gang": {"type": "string", "enum": ["a"]}}}, "v1.gang: any is no longer valid"),
    ],
)
def test_a_change_that_takes_something_away_is_seen(change: Any, loss: str) -> None:
    """A field gone, of another type, required or narrower; one more field is fine."""
    before = {"type": "object", "properties": {"gang": {"type": "string"}}}
    assert lost(before, {**before, **change}, "v1") == [loss]
    extended = {**before["properties"], "level": {"type": "string"}}  # type: ignore[dict-item]
    assert lost(before, {**before, "properties": extended}, "v1") == []
