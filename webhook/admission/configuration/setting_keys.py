"""The keys of the ConfigMap `bayplan-parameters` that are settings of Bayplan itself, one row each. Pure.

`parameters` reads the settings by these rows, and `python -m tests.docs.generate_parameters` writes
`policies/parameters.schema.json` and `docs/reference/parameters.md` from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import re2

from planner.manifests.growth import pools_from_text
from planner.model.errors import Where
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, MODES, Settings
from webhook.policy.model.packs import PACK, PACKS
from webhook.policy.model.parameters import quoted
from webhook.workloads.options import RESERVE_MODES


@dataclass(frozen=True, slots=True)
class SettingKey:
    """One key. A value of it is one of `values`, or matches the regular expression `pattern`, which `form`
    describes as text.

    `take`: returns the given settings with a value of the key. `show`: returns the key's value in settings as
    text. `of_cluster`: the key applies to the whole cluster, so it cannot be set for one namespace.
    """

    name: str
    description: str
    take: Callable[[Settings, str], Settings]
    show: Callable[[Settings], str]
    values: tuple[str, ...] = ()
    pattern: str = ""
    form: str = ""
    of_cluster: bool = False

    @property
    def default(self) -> str:
        """The default value as text; for `mode`, a flag of a command may set another default."""
        return self.show(DEFAULT_SETTINGS)

    def fault(self, text: str) -> str:
        """Returns why a text is not a valid value of this key; "" if it is one."""
        if text in self.values or (self.pattern and re2.fullmatch(self.pattern, text)):
            return ""
        valid = " or ".join(self.values) or self.form
        return f"{quoted(text)} is not valid; use {valid} (default {self.default})"

    @property
    def schema(self) -> Mapping[str, Any]:
        """The rule of this key in a JSON schema."""
        rule = {"enum": list(self.values)} if self.values else {"pattern": f"^({self.pattern})$"}
        return {"type": "string", **rule, "default": self.default, "description": self.description}


def _mode(settings: Settings, text: str) -> Settings:
    return replace(settings, mode=next(mode for mode in MODES if mode == text))


def _reserve(settings: Settings, text: str) -> Settings:
    mode = next(mode for mode in RESERVE_MODES if mode == text)
    return replace(settings, reserve=replace(settings.reserve, mode=mode))


def _whole_from(settings: Settings, text: str) -> Settings:
    return replace(settings, reserve=replace(settings.reserve, whole_from=float(text)))


_KEY, _VALUE = "[a-zA-Z0-9][a-zA-Z0-9./_-]{0,250}", "[a-zA-Z0-9._-]{0,63}"


_POOL_WORD = "|".join(
    (
        "nodes=[0-9]{1,6}",
        "cpu=[0-9]{1,6}m?",
        "(memory|ephemeral-storage)=[0-9]{1,9}(Ki|Mi|Gi|Ti)?",
        "pods=[0-9]{1,4}",
        "[a-z0-9][a-z0-9.-]{0,100}/[a-zA-Z0-9._-]{1,63}=[0-9]{1,6}",
        f"label:{_KEY}={_VALUE}",
        f"taint:{_KEY}(={_VALUE})?:(NoSchedule|PreferNoSchedule|NoExecute)",
    )
)


_POOL = f"[a-zA-Z0-9][a-zA-Z0-9._-]{{0,62}}:( +({_POOL_WORD}))*"


def _growing(settings: Settings, text: str) -> Settings:
    return replace(settings, growing=pools_from_text(text, Where()))


_TOLERATED: Mapping[str, bool | None] = {"auto": None, "true": True, "false": False}


def _tolerated(settings: Settings, text: str) -> Settings:
    return replace(settings, resources_tolerated=_TOLERATED[text])


def _held_gpus(settings: Settings, text: str) -> Settings:
    return replace(settings, holds=replace(settings.holds, gpus=int(text) if text else None))


def _per_used(settings: Settings, text: str) -> Settings:
    return replace(settings, holds=replace(settings.holds, per_used=float(text) if text else None))


def _fair_seconds(settings: Settings, text: str) -> Settings:
    return replace(settings, fair_seconds=float(text))


def _weight(settings: Settings, text: str) -> Settings:
    return replace(settings, weight=float(text))


def _moves_after(settings: Settings, text: str) -> Settings:
    return replace(settings, moves=replace(settings.moves, after=float(text)))


def _moves_every(settings: Settings, text: str) -> Settings:
    return replace(settings, moves=replace(settings.moves, every=float(text)))


def _moves_gpu_hours(settings: Settings, text: str) -> Settings:
    return replace(settings, moves=replace(settings.moves, gpu_hours=float(text)))


_ROWS = (
    SettingKey(
        "defrag.after-seconds",
        "How long a gang waits in the queue before the leader moves other workloads for it. Only "
        "restartable workloads are moved (label bayplan.dev/restartable, or preemptible for KAI). "
        "With 0, nothing is moved. This needs the permissions of components/defragmentation.",
        _moves_after,
        lambda settings: f"{settings.moves.after:g}",
        pattern="0|[1-9][0-9]{0,6}",
        form="0 or seconds",
    ),
    SettingKey(
        "defrag.every-seconds",
        "Minimum time between the starts of two sets of moves, in the whole cluster.",
        _moves_every,
        lambda settings: f"{settings.moves.every:g}",
        pattern="[1-9][0-9]{0,6}",
        form="seconds",
        of_cluster=True,
    ),
    SettingKey(
        "defrag.gpu-hours",
        "Maximum work that may be lost for one waiting gang, in GPU-hours since the start of the "
        "pods that are moved.",
        _moves_gpu_hours,
        lambda settings: f"{settings.moves.gpu_hours:g}",
        pattern=r"[0-9]{1,6}(\.[0-9]{1,3})?",
        form="a number of GPU-hours, such as 16 or 0.5",
    ),
    SettingKey(
        "growing.pools",
        "Node pools that can grow, one per line, in addition to those reported by Karpenter and the"
        " Cluster Autoscaler: a name, how many nodes can be added (unlimited if not set), and the "
        "resources of each node. A gang that fits on such nodes waits for them without a gate, "
        "instead of being refused.",
        _growing,
        lambda settings: ", ".join(pool.name for pool in settings.growing),
        pattern=f"[ \\n]*({_POOL}( *\\n[ \\n]*{_POOL})*)?[ \\n]*",
        form="lines such as h100: nodes=16 nvidia.com/gpu=8 cpu=192 label:pool=h100 taint:gpu:NoSchedule",
        of_cluster=True,
    ),
    SettingKey(
        "holds.gpus",
        "Maximum number of GPUs that the gangs of a namespace may reserve together, in addition to "
        "the GPU limits of its ResourceQuotas; empty for no limit. Gangs beyond it wait, and "
        "reserve nothing.",
        _held_gpus,
        lambda settings: "" if settings.holds.gpus is None else str(settings.holds.gpus),
        pattern=r"([0-9]{1,7})?",
        form="a number of GPUs, or nothing for no limit",
    ),
    SettingKey(
        "holds.per-used",
        "Maximum number of GPUs that the gangs of a namespace may reserve for each GPU that their "
        "pods use; empty for no limit. This limits whole racks that are reserved for few pods: a "
        "gang under reserve auto then reserves only what it uses.",
        _per_used,
        lambda settings: "" if settings.holds.per_used is None else f"{settings.holds.per_used:g}",
        pattern=r"([1-9][0-9]{0,3}(\.[0-9]{1,3})?)?",
        form="a number from 1 on such as 4 or 1.5, or nothing for no limit",
    ),
    SettingKey(
        "mode",
        "Mode of namespaces without the label bayplan.dev/mode. enforce: changes, refuses and "
        "reserves. warn: changes nothing, and kubectl shows what enforce would do. audit: only "
        "reports and metrics show it. off: does nothing.",
        _mode,
        lambda settings: settings.mode,
        values=MODES,
    ),
    SettingKey(
        PACK,
        "The scheduling system for which the shipped policies write. auto: every system detected in"
        " the cluster. kai, kueue, runai: only this one. plain: none. A pack sets some parameters "
        "of policies. Keys in the cluster's ConfigMap take precedence over the pack, and the pack "
        "over parameters.yaml.",
        lambda settings, text: replace(settings, pack=text),
        lambda settings: settings.pack,
        values=tuple(PACKS),
        of_cluster=True,
    ),
    SettingKey(
        "queue.fair-seconds",
        "How strongly the queue favours namespaces that hold little. A gang is ordered as if it had"
        " been applied later, by this many seconds times the share of the usable GPUs that its "
        "namespace would hold with it and the namespace's gangs before it. With 0, gangs are "
        "ordered by age only.",
        _fair_seconds,
        lambda settings: f"{settings.fair_seconds:g}",
        pattern=r"[0-9]{1,8}",
        form="a number of seconds",
        of_cluster=True,
    ),
    SettingKey(
        "queue.weight",
        "Weight of a namespace in the queue. With 2, the namespace may hold twice as much as one "
        "with weight 1 before its gangs come after the other's.",
        _weight,
        lambda settings: f"{settings.weight:g}",
        pattern=r"0?\.[0-9]{0,5}[1-9]0{0,5}|[1-9][0-9]{0,5}(\.[0-9]{1,5})?",
        form="a number above 0, such as 2 or 0.5",
    ),
    SettingKey(
        "reserve.default",
        "What gangs without the annotation bayplan.dev/reserve reserve. auto: a whole domain or "
        "what the gang uses, by its request. domain: whole domains. nodes: what the gang uses. "
        "none: nothing.",
        _reserve,
        lambda settings: settings.reserve.mode,
        values=RESERVE_MODES,
    ),
    SettingKey(
        "reserve.unbound-seconds",
        "How long a gang keeps its reservation while none of its pods is bound to a node, for "
        "example because of a full queue or a missing scheduler. Then it is released, the workload "
        "gets an event with the scheduler's message, and it is reserved again when a pod is bound. "
        "With 0, it is kept forever.",
        lambda settings, text: replace(settings, unbound_seconds=int(text)),
        lambda settings: str(settings.unbound_seconds),
        pattern="0|[1-9][0-9]{1,6}",
        form="0 or seconds from 10 on",
    ),
    SettingKey(
        "reserve.whole-from",
        "With reserve auto: the share of a domain's GPUs from which on a gang of several pods "
        "reserves the whole domain.",
        _whole_from,
        lambda settings: f"{settings.reserve.whole_from:g}",
        pattern=r"0?\.[0-9]{0,5}[1-9]0{0,5}|1(\.0{1,5})?",
        form="a share above 0 and up to 1, such as 0.5",
    ),
    SettingKey(
        "taints.tolerated-by-resource",
        "Whether the API server adds tolerations for the extended resources that a pod requests "
        "(admission plugin ExtendedResourceToleration), so that templates need none. auto: true if "
        "nodes have the labels of GKE or EKS, which enable it.",
        _tolerated,
        lambda settings: next(
            text for text, tolerated in _TOLERATED.items() if tolerated is settings.resources_tolerated
        ),
        values=tuple(_TOLERATED),
        of_cluster=True,
    ),
)


SETTING_KEYS: Mapping[str, SettingKey] = {row.name: row for row in _ROWS}
"""The rows by key."""
