"""Evaluates a mutation of a policy and applies its value to an object. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.cel import CelError, to_json
from webhook.cel.values import schema as schemas
from webhook.cel.values.values import JSONPatch, ObjectValue
from webhook.jsontools import patch
from webhook.policy.engine.activation import Activation
from webhook.policy.engine.failures import Failure, failure
from webhook.policy.engine.mutation.apply_merge import MergeError, merge
from webhook.policy.engine.mutation.schema_check import check_shape
from webhook.policy.engine.policy_pass import PolicyRun, failure_of
from webhook.policy.model.policy import Mutation


def mutated_or_failure(
    run: PolicyRun, activation: Activation, mutation: Mutation, obj: dict[str, Any]
) -> dict[str, Any] | Failure:
    """Returns the object after one mutation, or the failure if the mutation cannot be applied."""
    try:
        return _mutated(activation, mutation, obj)
    except CelError as error:
        return failure_of(run, mutation.expression, error)
    except ValueError as error:
        return failure(run.policy, run.binding, mutation.expression.label, str(error))


def _mutated(activation: Activation, mutation: Mutation, obj: dict[str, Any]) -> dict[str, Any]:
    """Returns the object after one mutation; the same object if a `test` of its patch does not hold.

    Raises CelError if the expression ends in an error, MergeError or PatchError if its value cannot be
    applied, ShapeError if the result does not fit the object's kind.
    """
    value = activation.evaluate(mutation.expression)
    mutated: dict[str, Any]
    if mutation.patch_type == "JSONPatch":
        try:
            mutated = patch.apply(obj, list(_operations(value)))
        except patch.TestFailedError:
            return obj
    else:
        if not isinstance(value, ObjectValue):
            raise MergeError("the expression must give an Object{}")
        schema = schemas.lookup(str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
        mutated = merge(schema, obj, to_json(value))
    check_shape(obj, mutated)
    return mutated


def _operations(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, (list, tuple)):
        raise patch.PatchError("the expression must give a list of JSONPatch{}")
    for row in value:
        if not isinstance(row, JSONPatch):
            raise patch.PatchError("the expression must give a list of JSONPatch{}")
        operation: dict[str, Any] = {"op": row.op, "path": row.path}
        if row.source:
            operation["from"] = row.source
        if row.has_value:
            operation["value"] = to_json(row.value)
        yield operation
