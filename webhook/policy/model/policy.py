"""Policies as they are run: what was read from a file, with every expression compiled.

One document to a Policy or a Binding, field by field of the schema (facts: admission.md, Schema).
"""

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
"""Variables of bayplan.dev policies, beyond upstream's; what each holds: `webhook.variables`."""


OF_POD_SET = ("gang.podSet.", "plan.nodes.", "plan.ranks.", "plan.gangs.", "plan.requirements.")
"""What differs between the PodSets of one object, each with the dot that ends its name: `gang.podSets` is the
object's, as all else of `gang` and `plan`."""


@dataclass(frozen=True, slots=True)
class Reads:
    """Which of its inputs an expression depends on.

    `target`: the object or template shown, as it is or was, or its request. `bayplan`: `gang`, `plan` or
    `cluster`. `pod_set`: what of these is a PodSet's own. `params`: the parameter object.
    """

    target: bool
    bayplan: bool
    pod_set: bool
    params: bool

    @classmethod
    def of(cls, program: Program) -> Reads:
        """By what the compiler saw; a variable that is used as a whole counts with all its fields."""
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

    `ours`: the policy is of bayplan.dev, so that its functions and variables are known.
    """

    policy: str
    label: str
    program: Program
    ours: bool
    reads: Reads

    @property
    def meaning(self) -> tuple[object, ...]:
        """Expressions of one meaning give one value for the same inputs, whichever policies they are of."""
        return self.ours, self.program.text

    def evaluate(self, bindings: Mapping[str, Any], budget: CostBudget) -> Any:
        """The value. Raises CelError."""
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
    """Which objects of the paramKind a binding gives: by name, or every one that a selector finds."""

    name: str = ""
    selector: LabelSelector | None = None
    namespace: str = ""
    deny_if_missing: bool = True


@dataclass(frozen=True, slots=True)
class PolicyBinding:
    """Puts a policy to work. `name` is "" for the binding that a policy without any is taken to have."""

    name: str = ""
    policy: str = ""
    param_ref: ParamRef | None = None
    match: MatchResources = EVERY_REQUEST
    actions: tuple[Action, ...] = ("Deny",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What both kinds of policy share.

    `uses`: root variables that any expression reads, through variables too. `on_templates`: it also runs on
    pod templates inside workloads. `alike`: to templates that are alike it does the same, whichever PodSet
    they are of.
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
    """Whose objects some policies leave alone, until when (seconds since the epoch; `ended` as it was
    written) and why. Names are patterns: `*` is any text, `?` any character; () is everybody."""

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
        """Whether it is from the policy of this name."""
        return like(policy, self.policies)

    def is_over(self, now: float) -> bool:
        """Whether it has ended."""
        return now >= self.until


def like(text: str, patterns: Iterable[str]) -> bool:
    """Whether a text is like one of some patterns."""
    return any(_pattern(pattern).fullmatch(text) is not None for pattern in patterns)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


@dataclass(frozen=True, slots=True)
class PolicySet:
    """All policies that answer a request, in the order in which they run.

    `mutating`: those that do not read `plan` first, then those that do, each part by name; a plan is thus
    made of what the former left. `params`: the objects that lay beside the policies, `rules`: what the schema
    beside them says of Bayplan's own. `exemptions`: by name. `warnings`: expressions that will fail when they
    are run, each with its place. `revision`: Git commit or content hash of the files, "" where it was not
    given.
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
        """Both kinds."""
        return (*self.mutating, *self.validating)

    @property
    def uses_plan(self) -> bool:
        """Whether any policy reads `plan`."""
        return any(policy.uses_plan for policy in self.policies)


REASON_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
