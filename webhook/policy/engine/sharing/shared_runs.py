"""Reuses the outcome of a policy on a new object, or on its only template, for all later ones of its form.

A run of a policy that reads no stand-in has the same outcome for each object with this form
(`forms/equal_objects.py`), also in later requests. All else that it can read is the same:

- policy, parameter object, form, Namespace with its limits, and the content of the variable `gang` are in its
  key
- `cluster` belongs to the owner of `EqualObjects`, who drops it when the nodes change. Values that change
  with pods are stand-ins (`PolicyInputs.variables_of_equal_objects`)
- the other variables (`OF_ONE_REQUEST`) are stand-ins.

A run on a form costs a request the same whether its outcome is known or not. So whether an object is refused
for the cost of its policies does not depend on earlier objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from webhook.cel.values.stand_in import StandInRead
from webhook.jsontools.path import Path
from webhook.policy.engine.conditions import KnownConditions
from webhook.policy.engine.forms.equal_objects import (
    MAX_CONTEXTS,
    EqualObjects,
    FormOutcome,
    SharedForm,
    digest,
)
from webhook.policy.engine.forms.form import Form
from webhook.policy.engine.forms.no_effect import NoEffect
from webhook.policy.engine.inputs import PolicyInputs
from webhook.policy.engine.targets import POD, Target
from webhook.policy.model.policy import Policy
from webhook.wire.request import AdmissionRequest

Effect = TypeVar("Effect")

OF_ONE_REQUEST: Final = frozenset(("plan", "request", "authorizer"))
"""The variables that differ between the requests for equal objects. They are stand-ins, so that a policy
which names one of them is shared too if an earlier condition does not hold."""


RUN_LIMIT: Final = 20_000
"""Maximum cost of a run on a form, in cost units, for its match conditions and for its other expressions. A
policy that costs more is run on each object: its conditions may be costly, and policies that are run on the
object itself evaluate them once for all.
"""


@dataclass(slots=True)
class SharedRuns:
    """The runs of one pass over the policies on a new object and on its only template.

    `former`: the outcomes of former requests. `namespace`: the digest of the Namespace and its limits. In
    `forms`, `variables` and `gangs`, the key is the path of a target.
    """

    former: EqualObjects
    inputs: PolicyInputs
    namespace: bytes
    conditions: KnownConditions = field(default_factory=KnownConditions)
    """The values of match conditions on forms."""

    forms: dict[Path, tuple[Any, SharedForm | None]] = field(default_factory=dict)
    """The last state of a target, and its form."""

    variables: dict[Path, tuple[Any, Mapping[str, Any]]] = field(default_factory=dict)
    """The last state of the object, and its `gang` and `cluster` with stand-ins."""

    gangs: dict[Path, tuple[Any, bytes | None]] = field(default_factory=dict)
    """The last state of the object, and the digest of its `gang`; None if `gang` is not available."""

    no_effects: tuple[Any, dict[int, NoEffect] | None] = (None, None)
    """The last state of the object, and the record of the policies that do nothing to it."""

    @classmethod
    def of(cls, request: AdmissionRequest, inputs: PolicyInputs) -> SharedRuns | None:
        """Returns the runs of a request for a new pod, or for a new object with pod templates; None for any
        other request.
        """
        former, obj = inputs.equal_objects, request.object
        is_new = request.operation == "CREATE" and request.old_object is None and not request.sub_resource
        if former is None or obj is None or not is_new:
            return None
        if request.kind != POD and not inputs.templates(obj):
            return None
        # Without a namespace, `namespaceObject` is null.
        space = (request.namespace_object, inputs.limits_of_equal_objects) if request.namespace else None
        namespace = digest(space)
        return None if namespace is None else cls(former, inputs, namespace)

    def form(
        self, target: Target, show: Callable[[Target], dict[str, Any]], *, template: bool
    ) -> SharedForm | None:
        """Returns the form of a target; None if it has none. See `EqualObjects.form`."""
        before, form = self.forms.get(target.path, (None, None))
        if before is target.raw:
            return form
        if before is not None and form is None:  # too large: the later states of this pass are not tried
            return None
        form = None if target.raw is None else self._form(target, show, template=template)
        self.forms[target.path] = target.raw, form
        return form

    def _form(
        self, target: Target, show: Callable[[Target], dict[str, Any]], *, template: bool
    ) -> SharedForm | None:
        inner = () if target.path else self.inputs.templates(target.raw or {})
        templates = [path for path, _ in inner if path]
        return self.former.form(target.obj or {}, lambda: show(target), templates, template=template)

    def outcome(
        self,
        part: tuple[Policy, Mapping[str, Any] | None, str | int],
        target: Target,
        whole: Mapping[str, Any],
        form: SharedForm,
        compute: Callable[[Mapping[str, Any]], Effect | None],
    ) -> Effect | None:
        """Returns the effect of a part of a policy on every new object or template of a form; None if the
        policy must be run on the target itself.

        `part`: a policy, its parameters, and which of its parts. `whole`: the object that contains the
        target. `compute` runs the part on the form, with `gang` and `cluster` of `whole`; if it reads a
        stand-in, the effect is None.
        """
        policy, params, name = part
        gang = self.gang(target, whole) if "gang" in policy.uses else None
        if gang is None and "gang" in policy.uses:
            return None
        key = id(policy), id(params), name, self.namespace, gang
        outcome = form.outcomes.get(key)
        if outcome is None:
            effect: Effect | None = None
            with suppress(StandInRead):
                effect = compute(self._variables(target, whole))
            outcome = FormOutcome(effect, (policy, params))
            form.record(key, outcome)
        return cast("Effect | None", outcome.effect)

    def no_effects_of(self, own: Target, form: Form | None) -> dict[int, NoEffect] | None:
        """Returns the record of the policies without an effect on the new objects of a form, to which the
        caller adds; None if the form, or what policies read besides it, is that of this object alone.

        `own`: the object itself.
        """
        whole, request = own.raw, own.request
        # A cluster-scoped object may lack parameters in another way (`parameters.fault`). An inlined template
        # is none of the form's.
        if whole is None or not isinstance(form, SharedForm) or not request.namespace:
            return None
        if self.inputs.inlined(whole):
            return None
        gang = self.gang(own, whole) if "gang" in self.inputs.variable_names else b""
        if gang is None:
            return None
        resources = request.resource, request.request_resource
        context = self.namespace, request.namespace, *resources, tuple(self.inputs.templates(whole)), gang
        record = form.no_effects.get(context)
        if record is None:
            if len(form.no_effects) >= MAX_CONTEXTS:
                form.no_effects.clear()
            record = form.no_effects[context] = {}
        return record

    def _variables(self, target: Target, whole: Mapping[str, Any]) -> Mapping[str, Any]:
        remembered = self.variables.get(target.path)
        if remembered is None or remembered[0] is not whole:
            remembered = whole, self.inputs.variables_of_equal_objects(whole, target.pod_set)
            self.variables[target.path] = remembered
        return remembered[1]

    def gang(self, target: Target, whole: Mapping[str, Any]) -> bytes | None:
        """Returns the digest of `gang` without what differs between equal objects; None if it is not
        available.
        """
        remembered = self.gangs.get(target.path)
        if remembered is None or remembered[0] is not whole:
            remembered = whole, None
            with suppress(ValueError):  # `gang` is not available: policies that read it fail on each object
                remembered = whole, digest(self._variables(target, whole).get("gang"))
            self.gangs[target.path] = remembered
        return remembered[1]
