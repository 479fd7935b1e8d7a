"""Reuses the outcome of a policy on a pod for later pods that are equal but for their names.

A Job sends hundreds of pods that differ only in their names and in what the plan writes onto each. Like the
templates of one object (`template_forms.py`), they have a common form, in which stand-ins replace the values
that differ. A run of a policy that reads no stand-in has the same outcome for each pod with this form, also
in later requests. Nothing else can change the outcome:

- policy, parameter object, form, Namespace, and the content of the variable `gang` are in its key
- `cluster` belongs to the owner of `EqualPods`, who drops it when the nodes change. Values that change with
  pods are stand-ins (`PolicyInputs.variables_of_equal_pods`)
- a policy that reads another variable (`OF_ONE_REQUEST`) is run on each pod.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

import orjson

from webhook.cel import CostBudget
from webhook.cel.values.stand_in import StandIn, StandInRead
from webhook.jsontools.path import Path, replaced
from webhook.policy.engine.inputs import PolicyInputs
from webhook.policy.engine.targets import POD, Target
from webhook.policy.engine.template_forms import Form
from webhook.wire.request import AdmissionRequest
from webhook.workloads.keys.annotation_keys import PLACEMENT, POLICIES, RESERVATION

Effect = TypeVar("Effect")

OF_ONE_REQUEST: Final = frozenset(("plan", "request", "authorizer"))
"""The variables that differ between the requests for equal pods."""


BY_THE_SERVER: Final = (
    "name", "generateName", "uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"
)  # fmt: skip
"""The fields of `metadata` that name a pod, or that the API server writes about it."""


BY_THE_PLAN: Final = (PLACEMENT, POLICIES, RESERVATION)
"""The annotations that admission writes about a pod's plan."""


STAND_INS: Final[Mapping[Path, StandIn]] = {
    **{("metadata", name): StandIn() for name in BY_THE_SERVER},
    **{("metadata", "annotations", key): StandIn() for key in BY_THE_PLAN},
}
"""The stand-ins for the fields that differ between equal pods, by path."""


MAX_FORMS: Final = 512
"""Maximum number of forms; the one that was not used for the longest time is removed first. The two calls for
a pod see it in about ten states, each with its form. After the plan, the form has the name of the node, so
that pods share their last three forms only with other pods of their node.
"""


MAX_OUTCOMES: Final = 512
"""Maximum number of outcomes of a form; all are removed when it is reached. There is one for each mutation
and validating policy, about 60, and as many again for each value of `gang`.
"""


MAX_BYTES: Final = 16 * 1024
"""Maximum length of a form, of `gang` and of the Namespace as JSON; a pod with more shares no outcomes. Most
pods have 2 to 8 kB. With `MAX_FORMS` and `MAX_OUTCOMES`, nobody can fill the memory with large pods.
"""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """`effect`: None if the policy must be run on each pod. `costs`: the units taken from each budget. They
    are taken again for each later pod, so that a refusal for its cost does not depend on earlier requests.
    `kept`: the objects whose `id` is in the key, kept alive so that no other object gets this `id`.
    """

    effect: object
    costs: tuple[int, ...]
    kept: tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PodForm(Form):
    """The form of equal pods, and the outcomes of policies on them, by what else these depend on."""

    outcomes: dict[tuple[object, ...], _Outcome] = field(default_factory=dict)

    def record(self, key: tuple[object, ...], outcome: _Outcome) -> None:
        """Records an outcome under its key."""
        if len(self.outcomes) >= MAX_OUTCOMES:
            self.outcomes.clear()
        self.outcomes[key] = outcome


@dataclass(slots=True)
class EqualPods:
    """The forms of pods, with the outcomes of policies for all requests with the same value of `cluster`.

    `forms`: by their content as JSON, the one used last at the end. There is no lock: two threads may compute
    the same outcome twice, and both results are equal.
    """

    forms: OrderedDict[bytes, PodForm] = field(default_factory=OrderedDict)

    def form(self, pod: dict[str, Any]) -> PodForm | None:
        """Returns the form of a pod, given with defaults; None if it is too large, or JSON cannot have it."""
        stand_ins = {place: stand_in for place, stand_in in STAND_INS.items() if _has(pod, place)}
        for place, stand_in in stand_ins.items():
            pod = replaced(pod, place, stand_in)
        content = _content(pod)
        if content is None:
            return None
        form = self.forms[content] = self.forms.pop(content, PodForm(pod, stand_ins))
        if len(self.forms) > MAX_FORMS:
            self.forms.popitem(last=False)
        return form


@dataclass(slots=True)
class PodRuns:
    """The runs of one request's policies on the new pod of this request.

    `former`: the outcomes of former requests. `namespace`: the Namespace of the request as JSON.
    """

    former: EqualPods
    inputs: PolicyInputs
    namespace: bytes
    formed: tuple[Any, PodForm | None] = (None, None)
    """The last state of the pod, and its form."""

    variables: tuple[Any, Mapping[str, Any]] = (None, {})
    """The last state of the pod, and its `gang` and `cluster` with stand-ins."""

    gang: tuple[Any, bytes | None] = (None, None)
    """The last state of the pod, and its `gang` as JSON; None if `gang` is not available."""

    @classmethod
    def of(cls, request: AdmissionRequest, inputs: PolicyInputs) -> PodRuns | None:
        """Returns the runs of a request for a new pod; None for any other request."""
        former = inputs.equal_pods
        is_new = request.operation == "CREATE" and request.old_object is None and not request.sub_resource
        if former is None or request.kind != POD or not is_new:
            return None
        namespace = _content(request.namespace_object)
        return None if namespace is None else cls(former, inputs, namespace)

    def form(self, target: Target, show: Callable[[Target], dict[str, Any]]) -> PodForm | None:
        """Returns the form of the pod; None if it has none. `show` returns the pod with defaults."""
        pod, form = self.formed
        if pod is not target.raw:
            # A pod without a form, such as a large one, is not tried again in its later states.
            has_form = pod is None or form is not None
            self.formed = target.raw, self.former.form(show(target)) if has_form else None
        return self.formed[1]

    def record(self, pod: Mapping[str, Any] | None, form: PodForm) -> None:
        """Records the form of the pod after a policy has changed it."""
        self.formed = pod, form

    def outcome(
        self,
        key: tuple[object, ...],
        target: Target,
        form: PodForm,
        *,
        reads_gang: bool,
        kept: tuple[object, ...],
        budgets: tuple[CostBudget, ...],
        compute: Callable[[Mapping[str, Any]], Effect | None],
    ) -> Effect | None:
        """Returns the effect of a policy on the pod; None if the policy must be run on each pod.

        `key`: what distinguishes the run from others, except for the Namespace and `gang`; it has the `id`s
        of the objects `kept`. `compute` runs the policy on the form, with the variables that it is given.
        """
        gang = self._gang(target) if reads_gang else None
        if reads_gang and gang is None:
            return None
        key = (*key, self.namespace, gang)
        outcome = form.outcomes.get(key)
        if outcome is None:
            left = [budget.left for budget in budgets]
            effect: Effect | None = None
            with suppress(StandInRead):
                effect = compute(self._variables(target))
            costs = tuple(units - budget.left for units, budget in zip(left, budgets, strict=True))
            form.record(key, _Outcome(effect, costs, kept))
            if effect is None:  # later pods do not have this run, so it costs nothing
                for budget, units in zip(budgets, left, strict=True):
                    budget.left = units
            return effect
        if outcome.effect is None or not all(map(CostBudget.suffices_for, budgets, outcome.costs)):
            return None
        for budget, cost in zip(budgets, outcome.costs, strict=True):
            budget.take(cost)
        return cast(Effect, outcome.effect)

    def _variables(self, target: Target) -> Mapping[str, Any]:
        if self.variables[0] is not target.raw:
            self.variables = target.raw, self.inputs.variables_of_equal_pods(target.raw or {})
        return self.variables[1]

    def _gang(self, target: Target) -> bytes | None:
        if self.gang[0] is not target.raw:
            self.gang = target.raw, None
            with suppress(ValueError):  # `gang` is not available: policies that read it fail on each pod
                self.gang = target.raw, _content(self._variables(target).get("gang"))
        return self.gang[1]


def _has(pod: Any, place: Path) -> bool:
    for step in place:
        if not isinstance(pod, dict) or step not in pod:
            return False
        pod = pod[step]
    return True


def _content(value: Any) -> bytes | None:
    """Returns a value as JSON, with null for each stand-in; None if it is too large or JSON cannot represent
    it.
    """
    try:
        content = orjson.dumps(value, default=_as_null)
    except TypeError:  # an integer of more than 64 bits, or a key that is not a string
        return None
    return content if len(content) <= MAX_BYTES else None


def _as_null(value: object) -> None:
    """Returns None for a stand-in. Raises TypeError for any other value that JSON does not have."""
    if type(value) is not StandIn:
        raise TypeError
