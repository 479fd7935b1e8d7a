"""Watches the ConfigMap `bayplan-parameters` in Bayplan's own namespace."""

from __future__ import annotations

import threading
from collections.abc import Callable

from planner.model.errors import Where
from webhook.kube.api.client import Api, Json
from webhook.kube.api.reflector import Reflector
from webhook.kube.api.store import Store
from webhook.kube.api.watches import Watches
from webhook.policy.model.parameters import PARAMETERS


class ParametersWatch(Watches):
    """Watches Bayplan's parameters; `start` it, and `close` it after use."""

    def __init__(self, api: Api, namespace: str, on_change: Callable[[], None]) -> None:
        """`namespace`: Bayplan's own. A ConfigMap of that name in another namespace is not read.
        `on_change` is called after each change.
        """
        self._key = f"{namespace}/{PARAMETERS}"
        self._store: Store[Json] = Store(_config_map, "ConfigMap", lambda *_: on_change(), threading.Lock())
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        query = {"fieldSelector": f"metadata.name={PARAMETERS}"}
        super().__init__([Reflector(api, path, self._store, query=query)])

    def configured(self) -> Json | None:
        """Returns the current ConfigMap, the same object until it changes; None if there is none.
        Thread-safe.
        """
        return self._store.items.get(self._key)


def _config_map(item: Json, _: Where) -> Json:
    """Adds apiVersion and kind, which list items lack."""
    return {"apiVersion": "v1", "kind": "ConfigMap", **item}
