"""Policies as they run: read from a file, with every expression compiled."""

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
"""What differs between the PodSets of one object, each with a dot at the end of its name: `gang.podSets`
belongs to the object, like everything else of `gang` and `plan`.
"""


@dataclass(frozen=True, slots=True)
class Reads:
    """The inputs that an expression depends on.

    `target`: the shown object or template, now or before, or its request. `bayplan`: `gang`, `plan` or
    `cluster`. `pod_set`: the parts of these that belong to a PodSet. `params`: the parameter object.
    """

    target: bool
    bayplan: bool
    pod_set: bool
    params: bool

    @classmethod
    def of(cls, program: Program) -> Reads:
        """Returns the inputs that the compiler saw; a variable that is used as a whole counts with all its
        fields.
        """
        roots = program.references
        return cls(
            not roots.isdisjoint(("object", "oldObject", "request", "variables")),
            not roots.isdisjoint(BAYPLAN_VARIABLES),
            not program.wholes.isdisjoint(("gang", "plan", "variables"))
            or any(f"{path}.".startswith(OF_POD_SET) for path in program.reads),
            "params" in roots,
        )


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression. `label` is its field path in the policy ("spec.validations[0].expression").

    `ours`: the policy is of bayplan.dev, so our functions and variables are known.
    """

    policy: str
    label: str
    program: Program
    ours: bool
    reads: Reads

    @property
    def meaning(self) -> tuple[object, ...]:
        """A key: expressions with equal keys give the same value for the same inputs, whichever policies they
        belong to.
        """
        return self.ours, self.program.text

    def evaluate(self, bindings: Mapping[str, Any], budget: CostBudget) -> Any:
        """Returns the value. Raises CelError."""
        return self.program.evaluate(bindings, budget)


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """A match condition, a variable, or an audit annotation (its key is the name)."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Mutation:
    """One of `mutations`."""

    patch_type: Literal["JSONPatch", "ApplyConfiguration"]
    expression: Expression


@dataclass(frozen=True, slots=True)
class Validation:
    """One of `validations`. `message` and `message_expression` may be missing."""

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
    """The objects of the paramKind that a binding refers to: by name, or all that a selector matches."""

    name: str = ""
    selector: LabelSelector | None = None
    namespace: str = ""
    deny_if_missing: bool = True


@dataclass(frozen=True, slots=True)
class PolicyBinding:
    """Binds a policy. `name` is "" for the implicit binding of a policy without one."""

    name: str = ""
    policy: str = ""
    param_ref: ParamRef | None = None
    match: MatchResources = EVERY_REQUEST
    actions: tuple[Action, ...] = ("Deny",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The common fields of both kinds of policy.

    `uses`: root variables that any expression reads, including through variables. `on_templates`: it also
    runs on pod templates inside workloads. `alike`: it does the same to equal templates, whichever PodSet
    they belong to.
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
    alike: bool = False

    @property
    def uses_plan(self) -> bool:
        """Whether any expression reads `plan`, so that the plan must be made before this policy runs."""
        return "plan" in self.uses


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
    """The objects to which some policies do not apply, until when (seconds since the epoch; `ended` as
    written), and why.

    Names are patterns: `*` matches any text, `?` any character; () matches everything.
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
        """Returns whether it applies to the policy of this name."""
        return like(policy, self.policies)

    def is_over(self, now: float) -> bool:
        """Returns whether it has ended."""
        return now >= self.until


def like(text: str, patterns: Iterable[str]) -> bool:
    """Returns whether a text matches one of some patterns."""
    return any(_pattern(pattern).fullmatch(text) is not None for pattern in patterns)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


@dataclass(frozen=True, slots=True)
class PolicySet:
    """All policies that answer a request, in the order in which they run.

    `mutating`: those that do not read `plan`, then those that do, each group by name, so a plan is made from
    the result of the former. `params`: the objects beside the policies; `rules`: the schema for Bayplan's
    own. `exemptions`: by name. `warnings`: expressions that will fail when they run, each with its position.
    `revision`: Git commit or content hash of the files, "" if unknown.
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
