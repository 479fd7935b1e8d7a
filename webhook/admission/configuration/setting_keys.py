"""The keys of the ConfigMap `bayplan-parameters` that are settings of Bayplan itself: a row each. Pure.

From these rows are made the `Settings` in force, `policies/parameters.schema.json` and
`docs/reference/parameters.md` (`python -m tests.docs.generate_parameters`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import re2

from planner.manifests.growth import pools_from_text
from planner.model.errors import Where
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, MODES, Settings
from webhook.policy.engine.packs import PACK, PACKS
from webhook.policy.engine.parameters import quoted
from webhook.workloads.options import RESERVE_MODES


@dataclass(frozen=True, slots=True)
class SettingKey:
    """One key. `take`: the settings with a value of the key, which is one of `values`, or of the form
    `pattern`; `form` says in words what fits the pattern.
    `show`: the value in settings, as text. `of_cluster`: it tells of the nodes, which are the same for every
    namespace.
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
        """What counts where nobody chose; for `mode` a flag of a command may say otherwise."""
        return self.show(DEFAULT_SETTINGS)

    def fault(self, text: str) -> str:
        """Why a text is no value of this key, "" where it is one."""
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
        "For how long a gang waits in the queue before the leader moves others for it, who may be restarted "
        "(label bayplan.dev/restartable, or preemptible for KAI); 0: nothing is ever moved. It needs the "
        "rights of components/defragmentation.",
        _moves_after,
        lambda settings: f"{settings.moves.after:g}",
        pattern="0|[1-9][0-9]{0,6}",
        form="0 or seconds",
    ),
    SettingKey(
        "defrag.every-seconds",
        "From the beginning of one set of moves to that of the next at least, in the whole cluster.",
        _moves_every,
        lambda settings: f"{settings.moves.every:g}",
        pattern="[1-9][0-9]{0,6}",
        form="seconds",
        of_cluster=True,
    ),
    SettingKey(
        "defrag.gpu-hours",
        "Work that is lost for one gang that waits at most, in GPU-hours since the pods that move for it "
        "have started.",
        _moves_gpu_hours,
        lambda settings: f"{settings.moves.gpu_hours:g}",
        pattern=r"[0-9]{1,6}(\.[0-9]{1,3})?",
        form="a number of GPU-hours, such as 16 or 0.5",
    ),
    SettingKey(
        "growing.pools",
        "Node pools that may grow, a line each, beside those that Karpenter and the Cluster Autoscaler tell "
        "of: a name, how many more nodes may come (without that any number), and what each has. A gang that "
        "fits once they have come waits for them, ungated, instead of being refused.",
        _growing,
        lambda settings: ", ".join(pool.name for pool in settings.growing),
        pattern=f"[ \\n]*({_POOL}( *\\n[ \\n]*{_POOL})*)?[ \\n]*",
        form="lines such as h100: nodes=16 nvidia.com/gpu=8 cpu=192 label:pool=h100 taint:gpu:NoSchedule",
        of_cluster=True,
    ),
    SettingKey(
        "holds.gpus",
        "GPUs that the gangs of a namespace may hold together, beside what its ResourceQuotas say of GPUs; "
        "empty for no other limit. What goes beyond waits, and holds nothing.",
        _held_gpus,
        lambda settings: "" if settings.holds.gpus is None else str(settings.holds.gpus),
        pattern=r"([0-9]{1,7})?",
        form="a number of GPUs, or nothing for no limit",
    ),
    SettingKey(
        "holds.per-used",
        "GPUs that the gangs of a namespace may hold for each one that their pods use of them, which bounds "
        "racks held whole for few pods; empty for no limit. A gang that may choose holds what it uses then.",
        _per_used,
        lambda settings: "" if settings.holds.per_used is None else f"{settings.holds.per_used:g}",
        pattern=r"([1-9][0-9]{0,3}(\.[0-9]{1,3})?)?",
        form="a number from 1 on such as 4 or 1.5, or nothing for no limit",
    ),
    SettingKey(
        "mode",
        "The mode of namespaces without the label bayplan.dev/mode: enforce patches, refuses and reserves; "
        "warn changes nothing and says in kubectl what would be; audit says it in reports and metrics only; "
        "off leaves everything alone.",
        _mode,
        lambda settings: settings.mode,
        values=MODES,
    ),
    SettingKey(
        PACK,
        "For which scheduling system the shipped policies write: auto for every one that the cluster "
        "shows, kai, kueue, runai for that one alone, plain for none. A pack sets a few parameters of "
        "policies; those of the cluster's ConfigMap count before it, those of the file beside the policies "
        "after it.",
        lambda settings, text: replace(settings, pack=text),
        lambda settings: settings.pack,
        values=tuple(PACKS),
        of_cluster=True,
    ),
    SettingKey(
        "queue.fair-seconds",
        "How far the queue is ordered by what namespaces have: a gang counts as applied this many seconds "
        "later, times the share of the GPUs it may use that its namespace would have with it and its own "
        "gangs before it. So who has less goes first, but none that was applied so much later; 0 orders by "
        "age alone.",
        _fair_seconds,
        lambda settings: f"{settings.fair_seconds:g}",
        pattern=r"[0-9]{1,8}",
        form="a number of seconds",
        of_cluster=True,
    ),
    SettingKey(
        "queue.weight",
        "How much a namespace may have compared with others before its gangs in the queue come after theirs: "
        "with 2 twice as much as one with 1.",
        _weight,
        lambda settings: f"{settings.weight:g}",
        pattern=r"0?\.[0-9]{0,5}[1-9]0{0,5}|[1-9][0-9]{0,5}(\.[0-9]{1,5})?",
        form="a number above 0, such as 2 or 0.5",
    ),
    SettingKey(
        "reserve.default",
        "What a gang holds whose workload does not say (annotation bayplan.dev/reserve): auto what suits it, "
        "domain whole domains, nodes what it uses, none nothing.",
        _reserve,
        lambda settings: settings.reserve.mode,
        values=RESERVE_MODES,
    ),
    SettingKey(
        "reserve.unbound-seconds",
        "For how long a gang keeps its place while no pod of it is on a node (a full queue, a volume that is "
        "elsewhere, a scheduler that is not there). Then it is released, with the scheduler's words on the "
        "workload, and held again once a pod is bound; 0: it is kept for ever.",
        lambda settings, text: replace(settings, unbound_seconds=int(text)),
        lambda settings: str(settings.unbound_seconds),
        pattern="0|[1-9][0-9]{1,6}",
        form="0 or seconds from 10 on",
    ),
    SettingKey(
        "reserve.whole-from",
        "With reserve auto: the share of a domain's GPUs from which on a gang of several pods holds the "
        "whole domain.",
        _whole_from,
        lambda settings: f"{settings.reserve.whole_from:g}",
        pattern=r"0?\.[0-9]{0,5}[1-9]0{0,5}|1(\.0{1,5})?",
        form="a share above 0 and up to 1, such as 0.5",
    ),
    SettingKey(
        "taints.tolerated-by-resource",
        "Whether the API server gives each pod tolerations for the extended resources that it requests "
        "(admission plugin ExtendedResourceToleration), so that a template needs none; auto: where nodes "
        "have the labels of GKE or EKS, which switch it on.",
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
