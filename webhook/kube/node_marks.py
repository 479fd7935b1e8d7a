"""Marks on nodes that are cordoned for a defragmentation, so that a later run can continue or undo it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from webhook.kube.api.client import Api, ApiError, Json
from webhook.workloads.keys.annotation_keys import DEFRAGMENTATION

TRIES = 5
"""Maximum number of attempts to patch a node before the conflict is reported; others, such as its kubelet,
write the node too.
"""


@dataclass(frozen=True, slots=True)
class CordonMark:
    """The mark on a node, an annotation. `aim`: the goal of the defragmentation in words. `gang`: the gang
    that is to be placed, NAMESPACE/KIND/NAME, "" if whole domains are freed. `since`: when the
    defragmentation began (RFC 3339). `by`: "leader" if Bayplan's leader began it, "" if a user did.
    """

    aim: str
    gang: str = ""
    since: str = ""
    by: str = ""

    def text(self) -> str:
        """Returns the value of the annotation."""
        by = {"by": self.by} if self.by else {}
        return json.dumps({"aim": self.aim, "gang": self.gang, "since": self.since, **by})


LEADER = "leader"
"""The value of `CordonMark.by` for Bayplan's leader."""


class CordonError(Exception):
    """A node cannot be cordoned; the message says why."""


@dataclass(frozen=True, slots=True)
class NodeMarks:
    """The marks on a cluster's nodes."""

    api: Api

    async def all(self) -> dict[str, CordonMark]:
        """Returns the marks of all marked nodes, by node and in the order of the nodes' names."""
        items, _ = await self.api.list("/api/v1/nodes", _name_and_value)
        return {name: _mark(value) for name, value in sorted(items) if value}

    async def cordon(self, name: str, mark: CordonMark) -> None:
        """Cordons and marks a node in one write.

        Raises `CordonError` if the node is cordoned already or does not exist.
        """
        try:
            await self._write(name, lambda node: _cordoned(node, mark))
        except ApiError as error:
            if error.status != 404:
                raise
            raise CordonError(f"node {name} is gone") from None

    async def uncordon(self, names: Iterable[str]) -> list[str]:
        """Uncordons those of the nodes that have a mark, and removes the marks; returns the names of these
        nodes.
        """
        marked = []
        for name in names:
            try:
                if await self._write(name, _uncordoned):
                    marked.append(name)
            except ApiError as error:
                if error.status != 404:
                    raise
        return marked

    async def _write(self, name: str, patch_of: Callable[[Json], Json]) -> bool:
        """Patches a node in the version that was read, with a retry after a conflict.

        `patch_of`: returns the patch for a node as it is stored, {} for none. Returns False if there is no
        patch. Raises `ApiError`.
        """
        for left in reversed(range(TRIES)):
            node = await self.api.get(f"/api/v1/nodes/{name}")
            patch = patch_of(node)
            if not patch:
                return False
            patch["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"]
            try:
                await self.api.merge(f"/api/v1/nodes/{name}", patch)
            except ApiError as error:
                if error.status != 409 or not left:
                    raise
            else:
                break
        return True


def _cordoned(node: Json, mark: CordonMark) -> Json:
    if (node.get("spec") or {}).get("unschedulable"):
        raise CordonError(f"node {node['metadata']['name']} was cordoned by somebody else in the meantime")
    return {"metadata": {"annotations": {DEFRAGMENTATION: mark.text()}}, "spec": {"unschedulable": True}}


def _uncordoned(node: Json) -> Json:
    if not _value(node):
        return {}
    return {"metadata": {"annotations": {DEFRAGMENTATION: None}}, "spec": {"unschedulable": None}}


def _value(node: Json) -> str:
    return str((node["metadata"].get("annotations") or {}).get(DEFRAGMENTATION) or "")


def _name_and_value(node: Json) -> tuple[str, str]:
    return str(node["metadata"]["name"]), _value(node)


def _mark(value: str) -> CordonMark:
    """Parses the value of the annotation; a value in another format, which somebody else wrote, becomes the
    aim.
    """
    try:
        fields = json.loads(value)
        rest = (str(fields.get(key, "")) for key in ("gang", "since", "by"))
        return CordonMark(str(fields["aim"]), *rest)
    except (ValueError, TypeError, KeyError, AttributeError):
        return CordonMark(value[:80])
