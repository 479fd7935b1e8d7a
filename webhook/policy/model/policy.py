"""The records of policies that were read from a file, with every expression compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from webhook.cel import CostBudget, Program
from webhook.policy.model.match import EVERY_REQUEST, MatchResources
from webhook.policy.model.parameters import NO_RULES, ParameterRules
from webhook.policy.model.selectors import EVERYTHING, LabelSelector

Action = Literal["Deny", "Warn", "Audit"]


BAYPLAN_VARIABLES = frozenset({"gang", "plan", "cluster"})
"""Variables of bayplan.dev policies in addition to upstream's; their content: `webhook.variables`."""


OF_POD_SET = ("gang.podSet.", "plan.nodes.", "plan.ranks.", "plan.gangs.", "plan.requirements.")
"""The fields of `gang` and `plan` that differ between the PodSets of one object; all other fields are equal
for them. The dot at the end distinguishes `gang.podSet` from `gang.podSets`.
"""


@dataclass(frozen=True, slots=True)
class Reads:
    """The inputs that an expression reads. Each field is true if the expression may read one of its inputs.

    `target`: `object`, `oldObject`, `request` or `variables`. `bayplan`: `gang`, `plan` or `cluster`.
    `pod_set`: fields of `gang` or `plan` that differ between PodSets. `params`: the parameter object.
    `params_alone`: the expression reads at most `params`, so its value depends only on the parameter object.
    """

    target: bool
    bayplan: bool
    pod_set: bool
    params: bool
    params_alone: bool

    @classmethod
    def of(cls, program: Program) -> Reads:
        """Returns the inputs that the compiler found in the expression. If a variable is used as a whole, all
        its fields count as read.
        """
        roots = program.references
        return cls(
            not roots.isdisjoint(("object", "oldObject", "request", "variables")),
            not roots.isdisjoint(BAYPLAN_VARIABLES),
            not program.wholes.isdisjoint(("gang", "plan", "variables"))
            or any(f"{path}.".startswith(OF_POD_SET) for path in program.reads),
            "params" in roots,
            roots <= {"params"},
        )


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression. `label` is its field path in the policy ("spec.validations[0].expression").

    `ours`: the policy is of the API group bayplan.dev, so the expression may use Bayplan's functions and
    variables.
    """

    policy: str
    label: str
    program: Program
    ours: bool
    reads: Reads

    @property
    def equality_key(self) -> tuple[object, ...]:
        """A cache key: expressions with equal keys have the same value for the same inputs, also in different
        policies.
        """
        return self.ours, self.program.text

    def evaluate(self, bindings: Mapping[str, Any], budget: CostBudget) -> Any:
        """Returns the expression's value. Raises CelError for an error in it or an exceeded budget."""
        return self.program.evaluate(bindings, budget)


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """A match condition, a variable, or an audit annotation, whose key is then the `name`."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Mutation:
    """One of a policy's `mutations`."""

    patch_type: Literal["JSONPatch", "ApplyConfiguration"]
    expression: Expression


@dataclass(frozen=True, slots=True)
class Validation:
    """One of a policy's `validations`. `message`, `message_expression`: "" and None if not stated."""

    expression: Expression
    message: str = ""
    reason: str = "Invalid"
    message_expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class ParamKind:
    """The kind of a policy's parameters."""

    api_version: str
    kind: str


CONFIG_MAP = ParamKind("v1", "ConfigMap")


@dataclass(frozen=True, slots=True)
class ParamRef:
    """A binding's reference to objects of the paramKind: one by name, or all that a selector matches.

    `namespace`: "" for the request's. `deny_if_missing`: parameterNotFoundAction is Deny, not Allow.
    """

    name: str = ""
    selector: LabelSelector | None = None
    namespace: str = ""
    deny_if_missing: bool = True


@dataclass(frozen=True, slots=True)
class PolicyBinding:
    """A binding: the policy applies to the requests that `match` selects, with the objects of `param_ref`.

    `name` is "" for the implicit binding of a policy that has no binding.
    """

    name: str = ""
    policy: str = ""
    param_ref: ParamRef | None = None
    match: MatchResources = EVERY_REQUEST
    actions: tuple[Action, ...] = ("Deny",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The common fields of both kinds of policy.

    `uses`: the root variables (`object`, `plan`, …) that its expressions read, including through `variables`.
    `ignore_failure`: failurePolicy is Ignore, not Fail. `on_templates`: the policy also runs on pod templates
    inside workloads. `reads_no_pod_set`: no expression reads a PodSet's own values, so the effect on equal
    templates is the same.
    """

    name: str
    kind: str
    api_version: str
    file: str
    description: str
    match: MatchResources
    param_kind: ParamKind | None
    conditions: tuple[NamedExpression, ...]
    variables: tuple[NamedExpression, ...]
    ignore_failure: bool
    on_templates: bool
    uses: frozenset[str]
    bindings: tuple[PolicyBinding, ...]
    reads_no_pod_set: bool = False

    @property
    def uses_plan(self) -> bool:
        """Whether any expression reads `plan`, so that the plan must be made before this policy runs."""
        return "plan" in self.uses

    @property
    def is_own(self) -> bool:
        """Whether the policy is of Bayplan's own API group, which may do more than Kubernetes permits."""
        return self.api_version.startswith("bayplan.dev/")

    @property
    def runs_without_params(self) -> bool:
        """Whether the policy runs with `params` null if a binding allows that parameters are missing."""
        return self.is_own

    @property
    def one_message_a_line(self) -> bool:
        """Whether each line of a messageExpression is a message. Kubernetes permits a single line."""
        return self.is_own


@dataclass(frozen=True, slots=True, kw_only=True)
class MutatingPolicy(Policy):
    """A MutatingAdmissionPolicy."""

    mutations: tuple[Mutation, ...]
    reinvoke: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatingPolicy(Policy):
    """A ValidatingAdmissionPolicy."""

    validations: tuple[Validation, ...]
    audit_annotations: tuple[NamedExpression, ...]


@dataclass(frozen=True, slots=True)
class PolicyException:
    """The objects to which some policies do not apply, and the reason.

    `until`: the end, in seconds since the epoch; `ended`: the end as written in the file. `policies` to
    `groups` are patterns for names: `*` matches any text, `?` any character. () restricts nothing, except
    that `policies` is never empty.
    """

    name: str
    file: str
    reason: str
    until: float
    ended: str
    policies: tuple[str, ...]
    namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    selector: LabelSelector = EVERYTHING
    namespace_selector: LabelSelector = EVERYTHING
    conditions: tuple[NamedExpression, ...] = ()

    def covers(self, policy: str) -> bool:
        """Returns whether the exemption is for the policy of this name."""
        return like(policy, self.policies)

    def is_over(self, now: float) -> bool:
        """Returns whether the exemption has ended at `now` (seconds since the epoch)."""
        return now >= self.until


def like(text: str, patterns: Iterable[str]) -> bool:
    """Returns whether a text matches any of the patterns."""
    return any(_pattern(pattern).fullmatch(text) is not None for pattern in patterns)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


@dataclass(frozen=True, slots=True)
class PolicySet:
    """All policies, in the order in which they run.

    `mutating`: the policies that do not read `plan`, then those that do, each group sorted by name; the plan
    is made from the result of the first group. `params`: the parameter objects in the policies' files;
    `rules`: the schema of Bayplan's own parameters. `exemptions`: sorted by name. `warnings`: expressions
    that will fail when they are evaluated, each with its position. `files`: the paths of the policy files;
    `revision`: their Git commit or content hash, "" if unknown.
    """

    mutating: tuple[MutatingPolicy, ...] = ()
    validating: tuple[ValidatingPolicy, ...] = ()
    params: tuple[Mapping[str, Any], ...] = ()
    rules: ParameterRules = NO_RULES
    exemptions: tuple[PolicyException, ...] = ()
    warnings: tuple[str, ...] = ()
    revision: str = ""
    files: tuple[str, ...] = field(default=(), compare=False)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies of both kinds."""
        return (*self.mutating, *self.validating)

    @property
    def uses_plan(self) -> bool:
        """Whether any policy reads `plan`."""
        return any(policy.uses_plan for policy in self.policies)


REASON_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
