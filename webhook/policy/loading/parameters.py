"""Checks parameters in files against their JSON schema: unknown keys and invalid values. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.policy.loading.document import PolicyDocument
from webhook.policy.loading.errors import Problem
from webhook.policy.model.parameters import (
    NO_RULES,
    PARAMETERS,
    ParameterRules,
    is_parameters,
    name_in,
    rules_of,
    text_of,
)


def own_rules(schemas: Mapping[str, Any]) -> ParameterRules:
    """Returns the rules for Bayplan's own parameters in the schemas beside a set of policies."""
    own = (schema for schema in schemas.values() if name_in(schema) == PARAMETERS)
    return rules_of(next(own, None))


def faults(document: PolicyDocument, schemas: Mapping[str, Any], own: ParameterRules) -> Iterator[Problem]:
    """Yields the problems of a document's parameters, by the schema beside its file; Bayplan's own parameters
    in any other file are checked by the rules `own`.
    """
    schema, metadata = schemas.get(document.file), document.value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    schema_applies = schema is not None and name_in(schema) in (None, name)
    rules = rules_of(schema) if schema_applies else own if is_parameters(document.value) else NO_RULES
    data = document.value.get("data")
    for key, value in data.items() if isinstance(data, Mapping) else ():
        if wrong := rules.fault(str(key), text_of(value)):
            yield document.problem(("data", key), wrong)
