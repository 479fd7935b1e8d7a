"""Reads GPU shares from KAI Scheduler's annotations and labels: fractions, memory, GPU groups.

KAI marks each shared GPU with a separate pod, which requests that whole GPU and has the label
`runai-gpu-group`, like the pods that share it. `planner.node.gpu_sharing` decides which shares fit together.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from planner.model.errors import InputError, Where
from planner.model.resources import GPU
from planner.model.words import shortened
from planner.node.gpu_sharing import DEVICES, FRACTION, MARKER, MEMORY, Share

GROUP_LABEL = "runai-gpu-group"
"""Label of a pod: the GPU group, which stands for one shared GPU. A pod on several shared GPUs has a label
`runai-gpu-group/…` for each.
"""


SHARE_KEYS = (FRACTION, MEMORY, DEVICES)
"""The annotations that `share_asked` reads."""


RESERVATION_SPACES = ("kai-resource-reservation", "runai-reservation")
"""Namespaces of the pods that mark shared GPUs."""


def share_asked(annotations: Mapping[str, object], where: Where) -> Share | None:
    """Returns the share that a pod's annotations request, or None. `where`: the location of the annotations.

    Raises `InputError`, with the field and the valid values, for annotations that KAI would refuse.
    """

    def annotation(key: str) -> str:
        return str(annotations.get(key) or "").strip()

    fraction, memory, devices = annotation(FRACTION), annotation(MEMORY), annotation(DEVICES)
    if not fraction and not memory:
        if devices:
            raise _wrong(where, DEVICES, f"needs {FRACTION} or {MEMORY} beside it; add one, or remove it")
        return None
    if fraction and memory:
        raise _wrong(where, MEMORY, f"contradicts {FRACTION}: {fraction}; keep one of the two")
    count = _count(devices, where, DEVICES, "a number of GPUs, 1 or more") if devices else 1
    if fraction:
        return Share(_fraction(fraction, where), 0, count)
    return Share("", _count(memory, where, MEMORY, "MiB of one GPU, a whole number of 1 or more"), count)


def _fraction(text: str, where: Where) -> str:
    try:
        value = Decimal(text) if len(text) <= 32 else Decimal("NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    if value.is_finite() and 0 < value < 1 and value.adjusted() > -7:
        return f"{value:f}".rstrip("0")
    valid = "a number above 0 and below 1 such as 0.5 (whole GPUs are asked for as nvidia.com/gpu)"
    raise _wrong(where, FRACTION, f"{shortened(text, 40)!r} is no fraction of a GPU; use {valid}")


def _count(text: str, where: Where, key: str, valid: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= 9 and int(text) > 0:
        return int(text)
    raise _wrong(where, key, f"{shortened(text, 40)!r} is not {valid}")


def _wrong(where: Where, key: str, message: str) -> InputError:
    return InputError(message, where.below(f"{key}"))


def groups_of(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the GPU groups that KAI assigned to a pod, from its labels."""
    first = labels.get(GROUP_LABEL, "")
    numbered = (value for key, value in labels.items() if key.startswith(GROUP_LABEL + "/"))
    return tuple(dict.fromkeys(group for group in (first, *sorted(numbered)) if group))


def shared_by(
    requests: dict[str, int], namespace: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> tuple[str, ...]:
    """Returns the GPU groups of a bound pod that shares GPUs, or that marks a GPU as shared (see the module);
    () for any other pod.

    Changes the pod's `requests`: adds the share; for a marking pod, replaces the GPU by the resource
    `MARKER`, because the pods that share the GPU account for it. A pod that requests whole GPUs shares none.
    Annotations that KAI would have refused are ignored: other programs may have written them.
    """
    groups = groups_of(labels)
    if groups and namespace in RESERVATION_SPACES:
        requests.pop(GPU, None)
        requests[MARKER] = 1
        return groups
    try:
        share = share_asked(annotations, Where())
    except InputError:
        share = None
    if share is None or requests.get(GPU):
        return ()
    requests[share.name] = 1
    return groups
