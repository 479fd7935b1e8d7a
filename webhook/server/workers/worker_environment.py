"""The environment of a decision in a worker: the data that was sent with the job, and questions to the
serving process for the rest. The only I/O is `ask`, which is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from planner.persistent.sequence_delta import spliced
from webhook.admission.configuration.parameters import NO_PARAMETERS, Parameters
from webhook.admission.configuration.settings import Settings
from webhook.admission.environment import AccessDecision, Environment, Query
from webhook.policy.model.policy import ParamKind
from webhook.server.workers.messages import Question, Surroundings
from webhook.wire.request import UserInfo

Ask = Callable[[Question], Any]
"""Sends a question to the serving process, and returns the answer or raises its error."""


@dataclass(slots=True)
class WorkerMemory:
    """The data that a worker keeps from one job to the next. The serving process sends only differences from
    it; its copy is `conversation.Knowledge`.
    """

    parameters: Parameters = NO_PARAMETERS
    sequences: dict[Any, tuple[Any, ...]] = field(default_factory=dict)


def worker_environment(
    sent: Surroundings, memory: WorkerMemory, ask: Ask, late: Callable[[], bool]
) -> Environment:
    """Returns the environment of a decision. Answers of `ask` about settings, PodGroups and lists are kept
    for the rest of the decision.
    """
    if sent.parameters is not None:
        memory.parameters = sent.parameters
    sequence = partial(_sequence, memory, ask, {})
    settings = _Settings(dict(sent.settings), ask)
    return Environment(
        namespaces=sent.namespaces,
        params=_Params(sequence),
        access=partial(_Access, ask),
        podgroups=_PodGroups(sent.pod_groups, ask) if sent.pod_groups else {},
        members=sent.members,
        sharing=sent.sharing,
        stored_members=lambda gang: ask(Question("members", (gang,))),
        waiting=partial(sequence, "waiting"),
        skips=lambda owner: bool(ask(Question("skips", (owner,)))),
        fenced=sent.fenced,
        settings=settings,
        parameters=memory.parameters,
        rivals=sent.rivals,
        late=late,
        now=sent.now,
    )


def _sequence(
    memory: WorkerMemory, ask: Ask, asked: dict[Any, tuple[Any, ...]], topic: Any, *words: Any
) -> tuple[Any, ...]:
    key = (topic, *words)
    if key not in asked:
        former = memory.sequences.get(key, ())
        asked[key] = memory.sequences[key] = spliced(former, ask(Question(topic, words)))
    return asked[key]


@dataclass(frozen=True, slots=True)
class _Params:
    sequence: Callable[..., tuple[Any, ...]]

    def objects(self, kind: ParamKind) -> Sequence[Any]:
        return self.sequence("params", kind)


@dataclass(frozen=True, slots=True)
class _Access:
    ask: Ask
    user: UserInfo

    def check(self, query: Query) -> AccessDecision:
        decision: AccessDecision = self.ask(Question("access", (self.user, query)))
        return decision


@dataclass(frozen=True, slots=True)
class _Settings:
    by_namespace: dict[str, Settings]
    ask: Ask

    def __call__(self, namespace: str) -> Settings:
        if namespace not in self.by_namespace:
            self.by_namespace[namespace] = self.ask(Question("settings", (namespace,)))
        return self.by_namespace[namespace]


class _PodGroups(Mapping[tuple[str, str], Mapping[str, Any]]):
    """The PodGroups of the cluster by namespace and name. Each is asked for when it is read: a decision reads
    only those that its pods name.
    """

    def __init__(self, count: int, ask: Ask) -> None:
        self._count = count
        self._ask = ask
        self._groups: dict[tuple[str, str], Mapping[str, Any] | None] = {}

    def __getitem__(self, key: tuple[str, str]) -> Mapping[str, Any]:
        if key not in self._groups:
            self._groups[key] = self._ask(Question("pod group", key))
        group = self._groups[key]
        if group is None:
            raise KeyError(key)
        return group

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._ask(Question("pod groups")))

    def __len__(self) -> int:
        return self._count
