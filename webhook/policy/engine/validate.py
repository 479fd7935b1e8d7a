"""Runs the validating policies over one object: denials, warnings and audit annotations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from webhook.cel import CelError
from webhook.cel.values.stand_in import StandInRead
from webhook.cel.values.values import type_name
from webhook.policy.engine.activation import Activation
from webhook.policy.engine.failures import Failure, failure
from webhook.policy.engine.findings import Finding, Findings
from webhook.policy.engine.forms.equal_objects import SharedForm
from webhook.policy.engine.forms.form import Form
from webhook.policy.engine.inputs import BareInputs, PolicyInputs, poll_policies
from webhook.policy.engine.policy_pass import PolicyPass, PolicyRun, failure_of
from webhook.policy.engine.sharing.template_forms import with_pod_set_hidden
from webhook.policy.engine.skipped import runnable_policies
from webhook.policy.engine.targets import Target
from webhook.policy.model.policy import (
    REASON_CODES,
    Action,
    Expression,
    PolicyBinding,
    PolicySet,
    ValidatingPolicy,
    Validation,
)
from webhook.wire.request import AdmissionRequest

MESSAGE_LIMIT = 5 * 1024
"""Kubernetes' limit for the result of a messageExpression, in bytes of UTF-8."""


ANNOTATION_LIMIT = 10 * 1024
"""Kubernetes' limit for one audit annotation, in bytes of UTF-8; longer ones are cut."""


KEY_LIMIT = 63
"""Maximum length of an audit annotation's key in the API server."""


FAILURE_KEY = "failure"
"""The key of the audit annotation for a finding with the action Audit, after the policy's name and a dot."""


Annotated: TypeAlias = tuple[str, str, str]
"""An audit annotation: the name of its policy, its own name, and its text."""


_Passed: TypeAlias = tuple[bool, tuple[Annotated, ...]]
"""The result of a policy without a finding or failure: whether its match conditions hold, and its audit
annotations.
"""


def run_validating(
    policies: PolicySet,
    request: AdmissionRequest,
    obj: Mapping[str, Any] | None,
    inputs: PolicyInputs | None = None,
) -> Findings:
    """Runs the validating policies of a set on an object (None on DELETE).

    Never raises for an error of a policy or an object: see `Findings.errors`.
    """
    policy_pass = PolicyPass.begin(policies, request, inputs or BareInputs())
    runnable, skipped = runnable_policies(policies.validating, policy_pass.inputs)
    collected = _Collected()
    for policy in runnable:
        collected.run(policy_pass, policy, obj)
    audited = collected.with_action("Audit")
    failed = ((finding.policy, FAILURE_KEY, finding.message) for finding in audited)
    failures = list(dict.fromkeys(collected.failures))
    return Findings(
        denials=collected.with_action("Deny"),
        warned=collected.with_action("Warn"),
        audited=audited,
        errors=tuple(row for row in failures if row.fatal),
        ignored=tuple(row for row in failures if not row.fatal),
        audit_annotations=_joined((*collected.annotated, *failed)),
        passed=tuple(collected.passed()),
        skipped=skipped,
        exempted=policy_pass.exemptions.outcomes,
        cost=policy_pass.budget.used,
    )


@dataclass(slots=True)
class _FormerRuns:
    """The runs of one policy on earlier templates. `contents`: the templates that it ran on. `passed`: for a
    binding, its parameters (both by identity) and a form, whether it passes on all templates of the form.
    """

    contents: set[tuple[object, ...]] = field(default_factory=set)
    passed: dict[tuple[int, int, Form], bool] = field(default_factory=dict)


class _Collected:
    """Collects the findings, failures and audit annotations of all policies.

    `ran`: the name of a policy for each run whose match conditions hold.
    """

    __slots__ = ("annotated", "failures", "findings", "ran")

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.failures: list[Failure] = []
        self.annotated: list[Annotated] = []
        self.ran: list[str] = []

    def with_action(self, action: Action) -> tuple[Finding, ...]:
        """Returns the findings whose binding has this action, each once."""
        return tuple(dict.fromkeys(row for row in self.findings if action in row.actions))

    def passed(self) -> list[str]:
        """Returns the policies that ran without a finding or failure."""
        bad = {row.policy for row in self.findings} | {row.policy for row in self.failures}
        return [name for name in dict.fromkeys(self.ran) if name not in bad]

    def run(self, policy_pass: PolicyPass, policy: ValidatingPolicy, obj: Mapping[str, Any] | None) -> None:
        """Runs one policy. If the object is exempt from it, all that it collected is removed again: the
        policy runs so that the exemption can report what it would have refused.
        """
        if (former := policy_pass.known_no_effect(policy, obj)) is not None:
            self._take(former.ran, former.annotations)
            return
        findings, failures, ran = len(self.findings), len(self.failures), len(self.ran)
        annotated, used = len(self.annotated), policy_pass.used
        is_common = self._run(policy_pass, policy, obj)
        if len(self.findings) == findings and len(self.failures) == failures:
            if is_common:
                policy_pass.record_no_effect(policy, obj, used, self.ran[ran:], self.annotated[annotated:])
            return

        def outcome() -> str:
            messages = [row.message for row in self.findings[findings:]]
            messages += [row.message for row in self.failures[failures:]]
            denies = any("Deny" in row.actions for row in self.findings[findings:])
            fatal = any(row.fatal for row in self.failures[failures:])
            return f"would have {'refused' if denies or fatal else 'warned'}: {messages[0]}"

        if policy_pass.exemptions.record_use(policy.name, outcome):
            del self.findings[findings:], self.failures[failures:], self.ran[ran:], self.annotated[annotated:]

    def _take(self, ran: Iterable[str], annotated: Iterable[Annotated]) -> None:
        """Takes over what is known of a policy without a finding or failure."""
        self.ran += ran
        self.annotated += annotated

    def _run(self, policy_pass: PolicyPass, policy: ValidatingPolicy, obj: Mapping[str, Any] | None) -> bool:
        """Runs the policy for each target, each binding, and each parameter object.

        Returns whether it is known to pass on all new objects with these forms.
        """
        is_common, former = True, _FormerRuns()
        # forms (templates that are equal but for stand-ins, see `forms/form.py`) that pass in every run
        all_passed: set[Form] = set()
        # Templates of one form may differ in labels, and an objectSelector selects only some of them: then no
        # form is skipped as a whole.
        runs_on_all = all(binding.match.selects_all for binding in policy.bindings)
        for target in policy_pass.targets(policy, obj):
            poll_policies()
            form = policy_pass.form(target, template=False)
            if form in all_passed:
                continue
            passes = runs_on_all
            for binding in policy.bindings:
                for run in policy_pass.runs(policy, binding, target):
                    if not self._passes_in_run(policy_pass, policy, run, target, obj, form, former):
                        passes = False
            if form is not None and passes:
                all_passed.add(form)
            is_common = is_common and passes and isinstance(form, SharedForm)
        return is_common

    def _passes_in_run(
        self,
        policy_pass: PolicyPass,
        policy: ValidatingPolicy,
        run: PolicyRun | Failure,
        target: Target,
        obj: Mapping[str, Any] | None,
        form: Form | None,
        former: _FormerRuns,
    ) -> bool:
        """Runs the policy for one target and one binding, unless the outcome is known.

        Returns whether it is known to pass on all templates of the form; False for a target without a form.
        """
        if isinstance(run, Failure):
            self.failures.append(run)  # as upstream, whatever the binding's actions are
            return False
        if isinstance(form, SharedForm):
            if self._passes_as_equal_objects(policy_pass, policy, run, target, obj, form):
                return True
        elif form is not None:
            key = id(run.binding), id(run.params), form
            if key not in former.passed:
                former.passed[key] = self._passes(policy_pass, policy, run, target, obj, form)
            if former.passed[key]:
                return True
        content = policy_pass.content(policy, run, target)
        if content is None or content not in former.contents:  # equal templates give the same result
            former.contents.update(() if content is None else (content,))
            shown = None if target.obj is None else policy_pass.cache.defaulted(target, template=False)
            self._validate(policy, run, policy_pass.activation(run, target, obj, shown), policy_pass)
        return False

    def _passes_as_equal_objects(
        self,
        policy_pass: PolicyPass,
        policy: ValidatingPolicy,
        run: PolicyRun,
        target: Target,
        whole: Mapping[str, Any] | None,
        form: SharedForm,
    ) -> bool:
        """Returns whether a policy passes on all new objects or templates of a form. If not, the caller runs
        it on the target itself.
        """

        def validate(alone: PolicyPass, activation: Activation) -> _Passed | None:
            """Returns None if there is a finding or a failure."""
            collected = _Collected()
            collected._validate(policy, run, activation, alone)
            if collected.findings or collected.failures:
                return None
            return bool(collected.ran), tuple(collected.annotated)

        passed = policy_pass.outcome_on_equal_objects(run, "validations", target, whole or {}, form, validate)
        if passed is None:
            return False
        ran, annotated = passed
        self._take([policy.name] if ran else [], annotated)
        return True

    def _passes(
        self,
        policy_pass: PolicyPass,
        policy: ValidatingPolicy,
        run: PolicyRun,
        target: Target,
        whole: Mapping[str, Any] | None,
        form: Form,
    ) -> bool:
        """Returns whether a policy passes on all templates of a form: it has no finding or failure, and reads
        none of the values in which the templates differ (stand-ins, see `forms/form.py`).

        If not, everything that this run collected is removed: the caller runs the policy on each template.
        """
        findings, failures, ran = len(self.findings), len(self.failures), len(self.ran)
        annotated = len(self.annotated)
        # The PodSet's name need not be hidden from a policy that reads no value of the PodSet.
        seen = target if policy.reads_no_pod_set else with_pod_set_hidden(target)
        try:
            self._validate(policy, run, policy_pass.activation(run, seen, whole, form.shown), policy_pass)
        except StandInRead:
            pass
        else:
            if len(self.findings) == findings and len(self.failures) == failures:
                return True
        del self.findings[findings:], self.failures[failures:], self.ran[ran:], self.annotated[annotated:]
        return False

    def _validate(
        self, policy: ValidatingPolicy, run: PolicyRun, activation: Activation, policy_pass: PolicyPass
    ) -> None:
        holds = policy_pass.conditions_hold(run, activation)
        if isinstance(holds, Failure):
            self._fail(holds, run.binding)
        if holds is not True:
            return
        self.ran.append(policy.name)
        for validation in policy.validations:
            self._check(activation, run, validation)
        self._annotate(activation, run, policy)

    def _fail(self, failed: Failure, binding: PolicyBinding) -> None:
        """Records that a match condition or a validation ended in an error.

        With failurePolicy Fail, it refuses the request only if its binding has the action Deny; otherwise it
        is recorded as a finding, so that the binding's actions (Warn, Audit) apply to it. Errors in the
        configuration and in audit annotations are none of these: as upstream, they refuse it in any case.
        """
        actions = binding.actions
        if failed.fatal and "Deny" not in actions:
            row = Finding(
                failed.policy, failed.binding, failed.label, failed.message, "Invalid", 422, actions
            )
            self.findings.append(row)
        else:
            self.failures.append(failed)

    def _check(self, activation: Activation, run: PolicyRun, validation: Validation) -> None:
        try:
            holds = activation.evaluate(validation.expression)
        except CelError as error:
            self._fail(failure_of(run, validation.expression, error), run.binding)
            return
        if holds is True:
            return
        self.findings += [
            Finding(
                policy=run.policy.name,
                binding=run.binding.name,
                label=validation.expression.label,
                message=message,
                reason=validation.reason,
                code=REASON_CODES[validation.reason],
                actions=run.binding.actions,
            )
            for message in _messages(activation, validation, by_line=run.policy.one_message_a_line)
        ]

    def _annotate(self, activation: Activation, run: PolicyRun, policy: ValidatingPolicy) -> None:
        """Adds the policy's own audit annotations; an expression that gives null or "" adds none.

        They have the whole budget, whatever the validations used.
        """
        if policy.audit_annotations:
            activation.budget.renew()
        for row in policy.audit_annotations:
            try:
                value = activation.evaluate(row.expression)
            except CelError as error:
                self.failures.append(failure_of(run, row.expression, error))
                continue
            if value is None:
                continue
            if isinstance(value, str):
                if text := value.strip():
                    self.annotated.append((policy.name, row.name, text))
            else:
                self.failures.append(_unsupported(run, row.expression, value))


def _joined(annotated: Iterable[Annotated]) -> dict[str, str]:
    """Returns the texts of audit annotations by key; texts of several bindings or parameters under one key
    are joined.

    The API server puts the webhook's name and a slash before the key, so the key contains no slash, and has
    at most 63 characters.
    """
    texts: dict[str, str] = {}
    for policy, name, text in annotated:
        key = f"{policy}.{name}".replace("/", ".")[:KEY_LIMIT].rstrip(".-_")
        earlier = texts.get(key)
        if earlier is None:
            texts[key] = _cut(text)
        elif text not in earlier:  # a text within an earlier one counts as a repetition of it
            texts[key] = _cut(f"{earlier}, {text}")
    return texts


def _unsupported(run: PolicyRun, expression: Expression, value: Any) -> Failure:
    """Returns the failure of an audit annotation whose value is neither a string nor null.

    As upstream, it refuses the request with failurePolicy Ignore too: the expression has not failed, the
    policy is wrong.
    """
    message = f"the value is of type {type_name(value)}; it must be a string or null"
    return replace(failure(run.policy, run.binding, expression.label, message), fatal=True)


def _messages(activation: Activation, validation: Validation, *, by_line: bool) -> list[str]:
    """Returns the text of messageExpression, else of message, else the expression itself.

    As in Kubernetes, a messageExpression counts only if its result without surrounding white space is a
    single line of at most `MESSAGE_LIMIT` bytes; `by_line`: it may have several lines, each a message.
    """
    if validation.message_expression is not None:
        try:
            text = activation.evaluate(validation.message_expression)
        except CelError:
            text = None
        lines = text.strip().split("\n") if isinstance(text, str) else []
        lines = [line.strip() for line in lines if line.strip()]
        if lines and (by_line or len(lines) == 1) and len(_utf8("\n".join(lines))) <= MESSAGE_LIMIT:
            return lines
    text = validation.expression.program.text
    return [validation.message or f"failed expression: {' '.join(text.split())}"]


def _cut(text: str) -> str:
    """Returns the text, or as many whole characters of it as `ANNOTATION_LIMIT` permits."""
    encoded = _utf8(text)
    return text if len(encoded) <= ANNOTATION_LIMIT else encoded[:ANNOTATION_LIMIT].decode(errors="ignore")


def _utf8(text: str) -> bytes:
    """Returns the text in UTF-8; half a surrogate pair, which UTF-8 cannot represent, becomes "?"."""
    return text.encode(errors="replace")
