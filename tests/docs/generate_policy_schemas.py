"""Write the JSON schemas of policy files and test files: `python -m tests.docs.generate_policy_schemas`.

They are what the loader's own readers ask for: each reader is run on a `Recorder` in place of a file's map,
which notes every field that is asked for, of which type, and whether it must be there. What a field means is
added from `DESCRIPTIONS`. Editors read draft 7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.docs.policy_fields import CASE_FIELDS, POLICY_FIELDS
from webhook.policy.loading.document import PolicyDocument
from webhook.policy.loading.fields import MOMENT, Fields, Required
from webhook.policy.loading.load import ROLES, versions_of
from webhook.policy.loading.read import BINDING_KINDS, POLICY_KINDS, read_binding, read_policy
from webhook.policy.loading.read_exemption import read_exemption
from webhook.policy.testing.cases import read_case_file

FOLDER = Path(__file__).parents[2] / "policies"

Schema = dict[str, Any]

PROBE = "probe"
"""What a recorder answers where a reader asks for text."""

TEXT: Schema = {"type": "string"}

ITS_OWN = {"apiVersion": TEXT, "kind": TEXT}


@dataclass(slots=True)
class Recorder(Fields):
    """Fields that stand in no file: what is asked for becomes the schema."""

    meanings: Mapping[str, str] = field(default_factory=dict)
    schema: Schema = field(default_factory=lambda: {"type": "object", "properties": {}})

    @classmethod
    def on(cls, kind: str, version: str, meanings: Mapping[str, str]) -> Recorder:
        """A recorder in place of a document of this kind."""
        value = {"apiVersion": version, "kind": kind, "metadata": {"name": PROBE}}
        return cls(PolicyDocument(PROBE, value, {}), (), {}, [], meanings=meanings)

    def _note(self, name: str, rule: Schema, required: Required = False) -> Schema:
        place = ".".join(str(step) for step in (*self.path, name) if step != 0)
        # The same map, and no copy: what is inside it is noted later.
        self.schema["properties"][name] = rule
        if meaning := self.meanings.get(place) or self.meanings.get(f"*.{name}", ""):
            rule["description"] = meaning
        if required:
            self.schema.setdefault("required", []).append(name)
        return rule

    def _inside(self, name: str, *parts: str | int) -> Recorder:
        return Recorder(self.document, (*self.path, name, *parts), {}, self.problems, meanings=self.meanings)

    def text(self, name: str, *, required: Required = False) -> str:
        """Text."""
        self._note(name, {**TEXT, **({"minLength": 1} if required else {})}, required)
        return PROBE

    def choice(self, name: str, options: Sequence[str], default: str) -> str:
        """One of a few words."""
        shown = {"default": default} if default else {}
        self._note(name, {"enum": list(options), **shown})
        return options[0]

    def variant(self, name: str, fields: Mapping[str, str]) -> tuple[str, Fields | None]:
        """A word, and the map that goes with it and with no other."""
        self._note(name, {"enum": list(fields)}, required=True)
        bodies = {body: self.child(body) for body in fields.values()}
        self.schema["oneOf"] = [
            {"properties": {name: {"const": word}}, "required": [body], **_without(fields, body)}
            for word, body in fields.items()
        ]
        for body in list(bodies.values())[1:]:
            assert body is not None
            body.text("expression", required=True)
            body.done()
        return next(iter(fields)), next(iter(bodies.values()))

    def flag(self, name: str) -> bool | None:
        """True or false."""
        self._note(name, {"type": "boolean"})
        return None

    def texts(self, name: str, options: Sequence[str] = (), *, required: Required = False) -> tuple[str, ...]:
        """Texts."""
        items = {"enum": list(options)} if options else TEXT
        self._note(name, {"type": "array", "items": items, **_filled(required)}, required)
        return tuple(options) or (PROBE,)

    def text_or_texts(self, name: str) -> tuple[str, ...]:
        """A text, or several."""
        self._note(name, {"anyOf": [TEXT, {"type": "array", "items": TEXT}]})
        return (PROBE,)

    def labels(self, name: str) -> dict[str, str]:
        """A map of texts."""
        self._note(name, {"type": "object", "additionalProperties": TEXT})
        return {}

    def child(self, name: str, *, required: Required = False) -> Fields | None:
        """A map inside."""
        inside = self._inside(name)
        self._note(name, inside.schema, required)
        return inside

    def children(self, name: str, *, max_items: int = 0, required: Required = False) -> list[Fields]:
        """Maps."""
        inside, limit = self._inside(name, 0), {"maxItems": max_items} if max_items else {}
        self._note(name, {"type": "array", "items": inside.schema, **limit, **_filled(required)}, required)
        return [inside]

    def free_map(self, name: str, words: str) -> Mapping[str, Any] | None:
        """Any map."""
        self._note(name, {"type": "object"})
        return None

    def free_list(self, name: str, words: str) -> list[Any] | None:
        """Any list."""
        self._note(name, {"type": "array"})
        return None

    def manifest(self, name: str) -> Mapping[str, Any] | str | None:
        """An object, or a path."""
        self._note(name, {"type": ["object", "string"]})
        return None

    def manifests(self, name: str) -> list[Mapping[str, Any] | str] | None:
        """Objects, and paths."""
        items = {"type": "array", "items": {"type": ["object", "string"]}}
        self._note(name, {"anyOf": [{"type": ["object", "string"]}, items]})
        return None

    def moment(self, name: str, *, whole_day: bool, required: Required = False) -> float | None:
        """A date or a time."""
        self._note(name, {**TEXT, "pattern": f"^{MOMENT.pattern}$"}, required)
        return 0.0

    def any_of(self, *names: str, hint: str = "") -> None:
        """At least one of some fields."""
        self.schema["anyOf"] = [
            {"required": [name], "properties": {name: _filled(True)}}
            if self.schema["properties"][name].get("type") == "array"
            else {"required": [name]}
            for name in names
        ]

    def exactly_one(self, *names: str) -> None:
        """Just one of some fields."""
        self.schema["oneOf"] = [{"required": [name]} for name in names]

    def ignore(self, *names: str) -> None:
        """Anything."""
        for name in names:
            self.schema["properties"].setdefault(name, {})

    def done(self) -> None:
        """There are no other fields."""
        self.schema["additionalProperties"] = False


def _filled(required: Required) -> Schema:
    return {"minItems": 1} if required else {}


def _without(fields: Mapping[str, str], kept: str) -> Schema:
    others = [{"required": [other]} for other in fields.values() if other != kept]
    return {"not": {"anyOf": others}}


def policy_schema() -> Schema:
    """Policies, bindings, exemptions, Lists of them; objects of other kinds are parameters, of any form."""
    kinds: dict[str, Schema] = {}
    for kind in ROLES:
        top = Recorder.on(kind, "bayplan.dev/v1alpha1", POLICY_FIELDS)
        if kind in POLICY_KINDS:
            read_policy(top, (), {}, [])
        elif kind in BINDING_KINDS:
            read_binding(top)
        else:
            read_exemption(top)
        top.schema["properties"]["kind"] = {"const": kind}
        top.schema["properties"]["apiVersion"] = {"enum": versions_of(kind)}
        kinds[kind] = {**top.schema, "required": ["apiVersion", "kind", *top.schema["required"]]}
    branches = [{"if": _is(kind), "then": {"$ref": f"#/definitions/{kind}"}} for kind in kinds]
    lists = {"if": _is("List"), "then": {"properties": {"items": {"type": "array", "items": {"$ref": "#"}}}}}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Admission policies, their bindings, exemptions and parameters",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": ITS_OWN,
        "allOf": [*branches, lists],
        "definitions": kinds,
    }


def _is(kind: str) -> Schema:
    return {"properties": {"kind": {"const": kind}}, "required": ["kind"]}


def tests_schema() -> Schema:
    """The cases of `tests.yaml`."""
    top = Recorder.on("", "", CASE_FIELDS)
    read_case_file(top, lambda path: [])
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Cases of bayplan test"}
    return {**head, **top.schema}


SCHEMAS = {"policy.schema.json": policy_schema, "tests.schema.json": tests_schema}
"""Each file in `policies/`, and what it holds."""


def text(schema: Schema) -> str:
    """As it stands in the file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, build in SCHEMAS.items():
        (FOLDER / name).write_text(text(build()))
