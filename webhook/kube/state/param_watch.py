"""Watches the parameter objects of policies, one watch for each kind that the policies name."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from planner.model.errors import Where
from webhook.kube.api.client import Api, Json
from webhook.kube.api.discovery import served_versions
from webhook.kube.api.reflector import Reflector
from webhook.kube.api.store import Store
from webhook.kube.api.watches import first_unread, problems_of
from webhook.policy.model.parameters import PARAMETERS
from webhook.policy.model.policy import CONFIG_MAP, ParamKind, PolicyBinding, PolicySet
from webhook.wire.request import plural


@dataclass(frozen=True, slots=True)
class _Followed:
    store: Store[Json]
    reflector: Reflector
    task: asyncio.Task[None]


class ParamsWatch:
    """The `webhook.policy.engine.inputs.Params` of the API server. Call `follow` at the start and on each
    reload.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._kinds: dict[ParamKind, _Followed] = {}

    def follow(self, policies: PolicySet) -> None:
        """Watches exactly the kinds whose objects these policies use as parameters. Must be called on the
        event loop.

        Bayplan's own ConfigMap has its own watch (`ParametersWatch`): policies that use only that ConfigMap
        do not cause all ConfigMaps of the cluster to be watched.
        """
        wanted = {
            policy.param_kind
            for policy in policies.policies
            if policy.param_kind is not None
            and not (policy.param_kind == CONFIG_MAP and all(map(_reads_own, policy.bindings)))
        }
        with self._lock:
            for kind in [kind for kind in self._kinds if kind not in wanted]:
                self._kinds.pop(kind).task.cancel()
            for kind in wanted.difference(self._kinds):
                self._kinds[kind] = self._begin(kind)

    def objects(self, kind: ParamKind) -> Sequence[Json]:
        """Returns the objects of a kind, ordered by namespace and name. Thread-safe."""
        with self._lock:
            followed = self._kinds.get(kind)
            items = dict(followed.store.items) if followed is not None else {}
        return [items[key] for key in sorted(items)]

    @property
    def reflectors(self) -> list[Reflector]:
        """The reflectors of the kinds that are watched at present."""
        with self._lock:
            return [followed.reflector for followed in self._kinds.values()]

    def waiting(self) -> str:
        """Returns one kind whose objects have not been read yet, or why they cannot be read; "" if all have
        been.
        """
        return first_unread(self.reflectors)

    def problem(self) -> str:
        """Returns the problems of the watches that fail at present; "" if there is none."""
        return problems_of(self.reflectors)

    async def close(self) -> None:
        """Stops all watches."""
        with self._lock:
            tasks = [followed.task for followed in self._kinds.values()]
            self._kinds.clear()
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    def _begin(self, kind: ParamKind) -> _Followed:
        store: Store[Json] = Store(partial(_typed, kind), kind.kind, _nothing, threading.Lock())
        find = partial(_path, self._api, kind)
        reflector = Reflector(self._api, f"{kind.kind}.{kind.api_version}", store, find=find)
        return _Followed(store, reflector, asyncio.create_task(reflector.run()))


def _reads_own(binding: PolicyBinding) -> bool:
    return binding.param_ref is None or binding.param_ref.name == PARAMETERS


def _typed(kind: ParamKind, item: Json, _: Where) -> Json:
    """Adds apiVersion and kind, which list items lack."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, **item}


def _nothing(*_: object) -> None:
    """Does nothing: a changed parameter does not change the snapshot."""


async def _path(api: Api, kind: ParamKind) -> str:
    """Returns the API path of the kind's objects in all namespaces; "" if the kind is not served: there are
    no parameter objects then, and each policy says what follows from that. Raises `ApiError`.
    """
    root = "/apis" if "/" in kind.api_version else "/api"
    served = await api.find(f"{root}/{kind.api_version}")
    if served is None:
        group, _, version = kind.api_version.rpartition("/")
        if not group or version not in await served_versions(api, group):
            return ""
        # A starting API server does not list its kinds yet: the list of the objects shows what is served.
        return f"{root}/{kind.api_version}/{plural(kind.kind)}"
    resource = _resource(served.get("resources") or (), kind.kind)
    return f"{root}/{kind.api_version}/{resource}" if resource else ""


def _resource(resources: Iterable[Json], kind: str) -> str:
    names = [
        str(resource["name"])
        for resource in resources
        if resource.get("kind") == kind and "/" not in str(resource["name"])
    ]
    return plural(kind) if plural(kind) in names else next(iter(names), "")
