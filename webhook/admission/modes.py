"""Determines the mode of a namespace, and what each mode does with a decision. Pure.

As with Pod Security Admission, a label sets the mode of a namespace: `bayplan.dev/mode`. Namespaces without
the label have the mode of the settings. `enforce` carries the decision out. `warn` and `audit` change, refuse
and reserve nothing; both write what `enforce` would do to the audit log, and `warn` also shows it to the
user. `off` examines nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from planner.model.names import dotted
from planner.model.words import listed, shortened
from webhook.admission.configuration.settings import MODES, Mode, Settings, mode_label
from webhook.admission.response import CHANGED, notices_of_waiting
from webhook.jsontools.path import pointer_steps
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.policy.engine.mutation.mutate import Effect
from webhook.wire.review import Response
from webhook.workloads.options import MODE

Json = Mapping[str, Any]


Outcome = Literal["refused", "queued", "changed", "unchanged"]
"""The outcome for an object in mode `enforce`."""

MAX_TEXT = 600
"""Maximum length of one warning, in characters: a few lines in kubectl, enough for a refusal with numbers."""

MAX_QUEUED, MAX_NAMES, MAX_FIELDS = 4, 6, 4
"""Maximum numbers of reasons to queue gangs, of policies and of fields that warnings name. The audit
annotation and `bayplan report` name more."""

MAX_ANNOTATION = 1024
"""Maximum length of an audit annotation, in characters, because it is stored with each audit event."""


@dataclass(frozen=True, slots=True)
class ModeInForce:
    """The mode of a request's namespace. `warning`: text that says what is wrong with its mode label, "" for
    a valid or missing label."""

    mode: Mode
    warning: str = ""

    @property
    def enforces(self) -> bool:
        """Whether the decision is carried out."""
        return self.mode == "enforce"


ENFORCE = ModeInForce("enforce")


def mode_in_force(namespace: Json | None, settings: Settings) -> ModeInForce:
    """Returns the mode in the label of a Namespace object, otherwise that of the settings.

    An invalid label counts as no label, with a warning, so that a typo never makes Bayplan do more.
    """
    label = mode_label(namespace)
    if label is None:
        return ModeInForce(settings.mode)
    if label in MODES:
        return ModeInForce(label)
    shown = f'"{label}"' if isinstance(label, str) else f"{str(label).lower()}, which is no string (quote it)"
    warning = (
        f"namespace {_name(namespace)}: label {MODE} is {shown}; valid are {', '.join(MODES)}. "
        f"Mode {settings.mode} applies, as for namespaces without the label"
    )
    return ModeInForce(settings.mode, warning)


def outcome(enforced: Response, plan: WorkloadPlan | None) -> Outcome:
    """Returns the outcome in `enforce` for an object, from its response and plan."""
    if not enforced.allowed:
        return "refused"
    if any(_waits(plan)):
        return "queued"
    return "changed" if enforced.patch else "unchanged"


def answer_in(
    force: ModeInForce,
    enforced: Response,
    plan: WorkloadPlan | None,
    effects: Iterable[Effect],
    policy_warnings: Iterable[str],
) -> Response:
    """Returns the response in the mode of the namespace. In every mode but `enforce`, the request is allowed
    without a patch.

    `enforced`: the response in `enforce`. `policy_warnings`: the warnings of policies about the object.
    """
    wrong = [force.warning] if force.warning else []
    mode = {"mode": force.mode}
    if force.enforces:
        return replace(
            enforced,
            warnings=[*enforced.warnings, *wrong],
            audit_annotations={**enforced.audit_annotations, **mode},
        )
    if force.mode == "off":
        return Response(True, warnings=wrong)
    annotations = {key: value for key, value in enforced.audit_annotations.items() if key != CHANGED}
    would = _annotations(enforced, plan)
    warnings = (
        [*_enforce_warnings(enforced, plan, effects, tuple(policy_warnings)), *policy_warnings]
        if force.mode == "warn"
        else []
    )
    return Response(True, warnings=[*warnings, *wrong], audit_annotations={**annotations, **mode, **would})


def _annotations(enforced: Response, plan: WorkloadPlan | None) -> dict[str, str]:
    """Returns the audit annotations that say what `enforce` would do."""
    queued = "; ".join(_waits(plan)) if enforced.allowed else ""
    would = {
        "would-refuse": "" if enforced.allowed else enforced.message,
        "would-queue": queued,
        "would-change": enforced.audit_annotations.get(CHANGED, ""),
    }
    return {key: shortened(text, MAX_ANNOTATION) for key, text in would.items() if text}


def _enforce_warnings(
    enforced: Response, plan: WorkloadPlan | None, effects: Iterable[Effect], policy_warnings: tuple[str, ...]
) -> Iterator[str]:
    """Yields a warning for each thing that `enforce` would do, the most serious first."""
    if not enforced.allowed:
        yield shortened(f"would be refused: {enforced.message}", MAX_TEXT)
        return
    waiting = list(_waits(plan))
    for text in waiting[:MAX_QUEUED]:
        yield shortened(f"would be queued: {text}", MAX_TEXT)
    if len(waiting) > MAX_QUEUED:
        yield f"would be queued: more gangs of it, for {len(waiting) - MAX_QUEUED} other reasons"
    if changes := _changes(effects):
        yield shortened(f"would be changed by {changes}", MAX_TEXT)
    notices = set(notices_of_waiting(plan, gated=True)) if plan is not None else ()
    for warning in enforced.warnings:
        if warning not in notices and warning not in policy_warnings:
            yield shortened(f"would warn: {warning}", MAX_TEXT)


def _waits(plan: WorkloadPlan | None) -> Iterator[str]:
    """Yields text for the gangs that would wait for the same: their names and the reason."""
    if plan is None:
        return

    def reason(placed: GangPlan) -> str:
        waits = placed.answer.decision == "queued" and placed.group.on_unavailable == "queue"
        for_nodes = placed.answer.waits_for_nodes and not plan.gated
        return placed.answer.message if waits and not for_nodes else ""

    yield from (f"{plan.each(gangs)}: {message}" for message, gangs in plan.by_text(reason))


def _changes(effects: Iterable[Effect]) -> str:
    """Returns policies and fields as text: `guaranteed-qos, kai-queue: metadata.labels and 2 more`."""
    policies: dict[str, None] = {}
    fields: dict[str, None] = {}
    for effect in effects:
        policies[effect.policy] = None
        fields.update({_field(str(operation["path"])): None for operation in effect.patch})
    return f"{listed([*policies], MAX_NAMES)}: {listed([*fields], MAX_FIELDS)}" if policies else ""


def _field(pointer: str) -> str:
    """Returns a JSON pointer as a dotted field path."""
    return dotted(tuple(int(step) if step.isdecimal() else step for step in pointer_steps(pointer)))


def _name(namespace: Json | None) -> str:
    metadata = (namespace or {}).get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else ""
    return str(name or "")
