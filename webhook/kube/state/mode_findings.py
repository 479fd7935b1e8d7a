"""Checks whether the mode of each namespace agrees with the webhooks. Pure.

The mode of a namespace may come from the settings, which the API server does not know: while no replica
answers, only the selectors and failure policies of the webhooks apply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from planner.model.resources import GPU
from planner.model.words import listed
from webhook.admission.configuration.settings import Settings
from webhook.admission.modes import mode_in_force
from webhook.kube.state.findings import CheckFinding
from webhook.policy.loading.webhooks import asks_about, webhooks_from
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import AdmissionRequest, from_object
from webhook.workloads.left_alone import NAMESPACES
from webhook.workloads.options import MODE

Json = Mapping[str, Any]


_MAX_NAMES = 3
"""Maximum number of namespaces in one line; the others are counted."""


def mode_findings(
    spaces: Iterable[Json], configuration: Json, settings: Callable[[str], Settings]
) -> list[CheckFinding]:
    """Returns a finding for each kind of disagreement between modes and the mutating webhooks, and one for
    invalid mode labels; if there is none, a finding that says so.

    `spaces`: Namespace objects. `configuration`: the mutating webhook configuration. `settings`: returns the
    settings of a namespace.
    """
    webhooks = configuration.get("webhooks") or []
    every = webhooks_from(configuration, "webhooks")
    failing = [webhook for webhook in webhooks if webhook.get("failurePolicy") != "Ignore"]
    closed = webhooks_from({"webhooks": failing}, "webhooks")
    names_by_way: dict[str, list[str]] = {mend: [] for mend in _WORDS}
    wrong: list[str] = []
    modes: Counter[str] = Counter()
    for space in spaces:
        name = space["metadata"]["name"]
        if name in NAMESPACES:
            continue
        force = mode_in_force(space, settings(name))
        modes[force.mode] += 1
        wrong += [force.warning] if force.warning else []
        if way := _difference(force.mode, _pod_in(space), every, closed):
            labelled = (space["metadata"].get("labels") or {}).get(MODE) == "enforce"
            names_by_way["open, labelled" if labelled and way == "open" else way].append(name)
    return [*_findings(names_by_way, wrong)] or [
        CheckFinding("modes", "ok", f"{_counted(modes)}; each as the webhooks have it")
    ]


def _difference(mode: str, request: AdmissionRequest, every: PolicySet, closed: PolicySet) -> str:
    """Returns how the webhooks disagree with the mode, a key of `_WORDS`; "" if they agree.

    `request`: the creation of a GPU pod in the namespace. `every`: all webhooks. `closed`: those that refuse
    while no replica answers.
    """
    if mode != "enforce":
        return "closed" if asks_about(closed, request) else ""
    if not asks_about(every, request):
        return "unasked"
    return "" if asks_about(closed, request) else "open"


def _findings(names_by_way: Mapping[str, Sequence[str]], wrong: Sequence[str]) -> Iterator[CheckFinding]:
    for way, names in names_by_way.items():
        if names:
            difference, mend = _WORDS[way]
            yield CheckFinding("modes", "warn", f"{listed(names, _MAX_NAMES)}: {difference}", mend)
    if wrong:
        mend = f"kubectl label namespace NAME --overwrite {MODE}=enforce (or warn, audit, off)"
        yield CheckFinding(
            "modes", "warn", "; ".join(wrong[:_MAX_NAMES]) + _rest_words(len(wrong) - _MAX_NAMES), mend
        )


_WORDS = {
    "open": (
        "enforced, and yet GPU workloads pass there unplanned while no replica answers",
        f"label them {MODE}=enforce, or kubectl apply -k overlays/enforce; with Helm: helm upgrade",
    ),
    "open, labelled": (
        "labelled enforce, and yet GPU workloads pass there unplanned while no replica answers",
        "close the webhooks: helm upgrade with --reset-then-reuse-values, or kubectl apply -k manifests/",
    ),
    "closed": (
        "not enforced, and yet GPU workloads are refused there while no replica answers",
        f"label them {MODE}=audit (or warn, off), or kubectl apply -k manifests/",
    ),
    "unasked": (
        "enforced, and yet no webhook is asked about GPU workloads there",
        "see the namespaceSelector of the webhooks, or kubectl apply -k manifests/",
    ),
}
"""The text for each disagreement, and what to do about it."""


def _rest_words(count: int) -> str:
    return f"; and {count} more" if count > 0 else ""


def _counted(modes: Counter[str]) -> str:
    counts = ", ".join(f"{count} {mode}" for mode, count in sorted(modes.items()))
    return f"namespaces: {counts or 'none'}"


def _pod_in(space: Json) -> AdmissionRequest:
    """Returns a request that creates a pod with a GPU in a namespace."""
    container = {"name": "main", "image": "none", "resources": {"limits": {GPU: "1"}}}
    metadata = {"name": "probe", "namespace": space["metadata"]["name"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    return from_object(pod, namespace_object=space)
