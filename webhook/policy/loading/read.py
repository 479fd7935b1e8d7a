"""Reads one document as a Policy or a Binding, field by field of the schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from webhook.cel import Function
from webhook.policy.engine.mutation.schema_check import schema_of
from webhook.policy.loading.document import PolicyDocument
from webhook.policy.loading.errors import Problem
from webhook.policy.loading.expressions import ExpressionCompiler
from webhook.policy.loading.fields import Fields
from webhook.policy.loading.read_match import read_match, read_selector
from webhook.policy.model.match import MatchResources
from webhook.policy.model.policy import (
    REASON_CODES,
    Action,
    Expression,
    MutatingPolicy,
    Mutation,
    NamedExpression,
    ParamKind,
    ParamRef,
    Policy,
    PolicyBinding,
    ValidatingPolicy,
    Validation,
)
from webhook.policy.model.selectors import EVERYTHING

MUTATING, VALIDATING = "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"


POLICY_KINDS = (MUTATING, VALIDATING)


BINDING_KINDS = tuple(f"{kind}Binding" for kind in POLICY_KINDS)


OUR_GROUP = "bayplan.dev"


TEMPLATES_ANNOTATION = "bayplan.dev/templates"


DESCRIPTION_ANNOTATION = "bayplan.dev/description"


SERVER_FIELDS = ("namespace", "creationTimestamp", "resourceVersion", "uid", "generation", "managedFields")


MAX_CONDITIONS = 64
"""Upstream's limit for matchConditions of one policy."""


PATCH_FIELDS = {"JSONPatch": "jsonPatch", "ApplyConfiguration": "applyConfiguration"}
"""The field with the expression of a mutation, by patchType."""


IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class Names:
    """The fields of a document that identify it, and its annotations."""

    kind: str
    name: str
    api_version: str
    annotations: Mapping[str, str]

    @classmethod
    def of(cls, document: PolicyDocument) -> Names:
        """Returns the names of a document; a missing or invalid value is empty, and becomes a problem when
        the document is read.
        """
        value = document.value
        metadata = value.get("metadata")
        fields = metadata if isinstance(metadata, dict) else {}
        name, annotations = fields.get("name"), fields.get("annotations")
        return cls(
            value["kind"],
            name if isinstance(name, str) else "",
            value["apiVersion"],
            annotations if isinstance(annotations, dict) else {},
        )


def read_binding(top: Fields) -> tuple[str, PolicyBinding]:
    """Returns the kind of policy that a binding is for, and the binding."""
    names, spec = open_object(top)
    kind = names.kind.removesuffix("Binding")
    if spec is None:
        return kind, PolicyBinding(names.name)
    binding = PolicyBinding(
        name=names.name,
        policy=spec.text("policyName", required=True),
        param_ref=_read_param_ref(spec.child("paramRef")),
        match=read_match(spec.child("matchResources"), rules_required=False),
        actions=_read_actions(spec) if kind == VALIDATING else ("Deny",),
    )
    spec.done()
    return kind, binding


def read_policy(
    top: Fields,
    bindings: tuple[PolicyBinding, ...],
    functions: Mapping[str, Function],
    warnings: list[Problem],
) -> Policy | None:
    """Returns a policy with its bindings; None if a problem was recorded.

    Problems that do not make the policy unusable are added to `warnings`.
    """
    before = len(top.problems)
    names, spec = open_object(top)
    if spec is None:
        return None
    ours = names.api_version.partition("/")[0] == OUR_GROUP
    param_kind = _read_param_kind(spec.child("paramKind"))
    match = _read_constraints(spec)
    has_params, schema = param_kind is not None, schema_of(match)
    compiler = ExpressionCompiler(names.name, ours, has_params, functions, schema, warnings=warnings)
    if param_kind is None and any(binding.param_ref for binding in bindings):
        spec.wrong("a binding gives paramRef, and the policy has no paramKind")
    head = {
        "name": names.name,
        "kind": names.kind,
        "api_version": names.api_version,
        "file": top.document.file,
        "description": str(names.annotations.get(DESCRIPTION_ANNOTATION, "")),
        "match": match,
        "param_kind": param_kind,
        "conditions": read_conditions(spec, compiler, "matchConditions"),
        "variables": _read_variables(spec, compiler),
        "ignore_failure": spec.choice("failurePolicy", ("Fail", "Ignore"), "Fail") == "Ignore",
        "on_templates": ours or names.annotations.get(TEMPLATES_ANNOTATION) == "true",
        "bindings": bindings or (_unbound(param_kind),),
    }
    read_body = _read_mutating if names.kind == MUTATING else _read_validating
    policy = read_body(spec, compiler, head)
    spec.done()
    return policy if len(top.problems) == before else None


def _unbound(param_kind: ParamKind | None) -> PolicyBinding:
    """Returns the implicit binding of a policy without bindings: it applies to all requests that the policy
    matches, with each object of the paramKind.
    """
    return PolicyBinding(param_ref=_param_ref(selector=EVERYTHING) if param_kind else None)


def open_object(top: Fields) -> tuple[Names, Fields | None]:
    """Checks the outer fields of an object. Returns its names and the map `spec`, None if it is missing."""
    top.ignore("apiVersion", "kind", "status")
    metadata = top.child("metadata", required=", with a name")
    if metadata is not None:
        metadata.text("name", required=True)
        metadata.labels("labels")
        metadata.labels("annotations")
        metadata.ignore(*SERVER_FIELDS)
        metadata.done()
    spec = top.child("spec", required=True)
    top.done()
    return Names.of(top.document), spec


def _read_constraints(spec: Fields) -> MatchResources:
    return read_match(spec.child("matchConstraints", required=True), rules_required=True)


def read_conditions(spec: Fields, compiler: ExpressionCompiler, field: str) -> tuple[NamedExpression, ...]:
    """Returns match conditions; they cannot read `variables`."""
    result: list[NamedExpression] = []
    for row in spec.children(field, max_items=MAX_CONDITIONS):
        name = row.text("name", required=True)
        _unique(row, "name", name, [condition.name for condition in result])
        expression = compiler.take(row, "expression", gives="bool", variables=False)
        row.done()
        if expression:
            result.append(NamedExpression(name, expression))
    return tuple(result)


def _read_variables(spec: Fields, compiler: ExpressionCompiler) -> tuple[NamedExpression, ...]:
    """Returns the variables in order; each may read the previous ones."""
    result: list[NamedExpression] = []
    for row in spec.children("variables"):
        name = row.text("name", required=True)
        if name and not IDENTIFIER.fullmatch(name):
            row.wrong("must be an identifier: letters, digits and _", "name")
        _unique(row, "name", name, compiler.variables)
        expression = compiler.take(row, "expression")
        row.done()
        if expression:
            result.append(compiler.declare(name, expression))
        else:
            # Declared anyway, so that an invalid variable is one problem, not another for each use of it.
            compiler.variables.append(name)
    return tuple(result)


def _unique(row: Fields, field: str, name: str, others: list[str]) -> None:
    if name in others:
        row.wrong(f"{name} occurs twice", field)


def _read_mutating(spec: Fields, compiler: ExpressionCompiler, head: dict[str, Any]) -> MutatingPolicy:
    rows = [_read_mutation(row, compiler) for row in spec.children("mutations", required=": at least one")]
    mutations = tuple(row for row in rows if row)
    reinvoke = spec.choice("reinvocationPolicy", ("Never", "IfNeeded"), "Never") == "IfNeeded"
    expressions = [*_expressions(head), *(row.expression for row in mutations)]
    uses, reads_no_pod_set = compiler.uses(expressions), _reads_no_pod_set(expressions)
    return MutatingPolicy(
        **head, uses=uses, reads_no_pod_set=reads_no_pod_set, mutations=mutations, reinvoke=reinvoke
    )


def _read_mutation(row: Fields, compiler: ExpressionCompiler) -> Mutation | None:
    patch_type, body = row.variant("patchType", PATCH_FIELDS)
    if body is None:
        return None
    gives = "list" if patch_type == "JSONPatch" else "Object"
    expression = compiler.take(body, "expression", gives=gives, mutations=True)
    body.done()
    row.done()
    return Mutation(patch_type, expression) if expression else None  # type: ignore[arg-type]


def _read_validating(spec: Fields, compiler: ExpressionCompiler, head: dict[str, Any]) -> ValidatingPolicy:
    validations = _each(spec, "validations", lambda row: _read_validation(row, compiler))
    annotations = _each(spec, "auditAnnotations", lambda row: _read_annotation(row, compiler))
    spec.any_of("validations", "auditAnnotations")
    expressions = [*_expressions(head), *(row.expression for row in (*validations, *annotations))]
    expressions += [row.message_expression for row in validations if row.message_expression]
    uses, reads_no_pod_set = compiler.uses(expressions), _reads_no_pod_set(expressions)
    return ValidatingPolicy(
        **head,
        uses=uses,
        reads_no_pod_set=reads_no_pod_set,
        validations=validations,
        audit_annotations=annotations,
    )


def _each(spec: Fields, name: str, read: Callable[[Fields], Any]) -> tuple[Any, ...]:
    rows = [read(row) for row in spec.children(name)]
    return tuple(row for row in rows if row)


def _read_validation(row: Fields, compiler: ExpressionCompiler) -> Validation | None:
    expression = compiler.take(row, "expression", gives="bool")
    message_expression = compiler.take(row, "messageExpression", gives="string", required=False)
    message = row.text("message")
    if "\n" in message:
        row.wrong("must be one line", "message")
    reason = row.choice("reason", tuple(REASON_CODES), "Invalid")
    row.done()
    return Validation(expression, message, reason, message_expression) if expression else None


def _read_annotation(row: Fields, compiler: ExpressionCompiler) -> NamedExpression | None:
    key = row.text("key", required=True)
    expression = compiler.take(row, "valueExpression")
    row.done()
    return NamedExpression(key, expression) if expression else None


def _expressions(head: Mapping[str, Any]) -> list[Expression]:
    return [row.expression for row in (*head["conditions"], *head["variables"])]


def _reads_no_pod_set(expressions: Iterable[Expression]) -> bool:
    """Returns whether no expression reads a value that differs between the PodSets of an object."""
    return not any(expression.reads.pod_set for expression in expressions)


_param_kind, _param_ref = lru_cache(maxsize=64)(ParamKind), lru_cache(maxsize=64)(ParamRef)
"""Create a paramKind or paramRef; equal ones are one object, so that results for it are found by identity:
most policies of a set have the same paramKind and paramRef.
"""


def _read_param_kind(fields: Fields | None) -> ParamKind | None:
    if fields is None:
        return None
    kind = _param_kind(fields.text("apiVersion", required=True), fields.text("kind", required=True))
    fields.done()
    return kind


def _read_param_ref(fields: Fields | None) -> ParamRef | None:
    if fields is None:
        return None
    selector = fields.child("selector")
    name = fields.text("name")
    fields.exactly_one("name", "selector")
    missing = fields.choice("parameterNotFoundAction", ("Allow", "Deny"), "Deny")
    ref = _param_ref(
        name=name,
        selector=read_selector(selector) if selector else None,
        namespace=fields.text("namespace"),
        deny_if_missing=missing == "Deny",
    )
    fields.done()
    return ref


def _read_actions(spec: Fields) -> tuple[Action, ...]:
    actions = spec.texts("validationActions", ("Deny", "Warn", "Audit"), required=": Deny, Warn or Audit")
    if len(set(actions)) < len(actions):
        spec.wrong("an action occurs twice", "validationActions")
    if {"Deny", "Warn"} <= set(actions):
        spec.wrong("Deny and Warn do not go together: a denial is shown anyway", "validationActions")
    return cast("tuple[Action, ...]", actions)
