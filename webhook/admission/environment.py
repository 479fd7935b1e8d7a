"""What a cluster gives to decisions beside its snapshot: namespaces, parameters, PodGroups, permissions.

From cluster files on the command line, from watches in a cluster. Nothing here does I/O: an `Access` that
asks the API server is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.admission.settings import Settings, default_settings
from webhook.cel.libraries.authorizer import Access, Authorizer, Unavailable
from webhook.placement.group_members import GroupMember
from webhook.placement.queue import WaitingGang
from webhook.policy.engine.inputs import FileParams, Params
from webhook.policy.engine.model import ParamKind, PolicySet
from webhook.wire.request import AdmissionRequest, UserInfo

Json = Mapping[str, Any]


_NOT_KEPT = ("Node", "Pod", "Event", "Lease")
"""Kinds that no policy takes as parameters, and of which a cluster has too many to keep."""


_NO_PARAMS = FileParams(())


def no_access(user: UserInfo) -> Access:
    """Offline there is nobody to ask."""
    return Unavailable()


def no_skip(owner: str) -> bool:
    """Nothing is known of the owner."""
    return False


@dataclass(frozen=True, slots=True)
class Environment:
    """`namespaces` by name; `params` gives objects of a kind; `access` answers for one user.

    `podgroups`: PodGroup and Workload objects by namespace and name, which pods refer to. `members`: pods of
    such groups that are in no cluster yet. `waiting` gives the queue, in order. `skips`: whether the owner
    NAMESPACE/KIND/NAME, or one above it, leaves the plan. `fenced`: reserved domains carry a taint.
    `settings`: those in force for a namespace.
    """

    namespaces: Mapping[str, Json] = field(default_factory=dict)
    params: Params = _NO_PARAMS
    access: Callable[[UserInfo], Access] = no_access
    podgroups: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    members: Sequence[GroupMember] = ()
    waiting: Callable[[], Sequence[WaitingGang]] = tuple
    skips: Callable[[str], bool] = no_skip
    fenced: bool = False
    settings: Callable[[str], Settings] = default_settings

    @classmethod
    def of_objects(cls, objects: Iterable[Json]) -> Environment:
        """From what cluster files hold: Namespaces, and every other object as a possible parameter."""
        known = tuple(obj for obj in objects if obj.get("kind") not in _NOT_KEPT)
        spaces = {_name(obj): obj for obj in known if obj.get("kind") == "Namespace"}
        return cls(spaces, FileParams(known), podgroups=pod_groups(known))

    def with_namespace(self, request: AdmissionRequest) -> AdmissionRequest:
        """The request with its Namespace object, where that is known here."""
        known = self.namespaces.get(request.namespace)
        return request if known is None else replace(request, namespace_object=known)

    def params_beside(self, policies: PolicySet) -> Params:
        """Parameters from the files beside the policies, then from here."""
        return _BothParams(FileParams(policies.params), self.params)

    def authorizer(self, user: UserInfo) -> Authorizer:
        """The CEL variable `authorizer`, speaking of the user who asks."""
        return Authorizer(self.access(user))


def pod_groups(objects: Iterable[Json]) -> dict[tuple[str, str], Json]:
    """The objects that tell pods of their gang, by namespace and name."""
    return {
        (_meta(obj, "namespace") or "default", _name(obj)): obj
        for obj in objects
        if obj.get("kind") == "PodGroup"
        or (obj.get("kind") == "Workload" and str(obj.get("apiVersion", "")).startswith("scheduling.k8s.io/"))
    }


@dataclass(frozen=True, slots=True)
class _BothParams:
    """Two sources; an object that both have is the first one's."""

    first: Params
    second: Params

    def objects(self, kind: ParamKind) -> Sequence[Json]:
        objects = {_key(obj): obj for obj in self.second.objects(kind)}
        return list({**objects, **{_key(obj): obj for obj in self.first.objects(kind)}}.values())


def _key(obj: Json) -> tuple[str, str]:
    return _meta(obj, "namespace"), _meta(obj, "name")


def _name(obj: Json) -> str:
    return _meta(obj, "name")


def _meta(obj: Json, key: str) -> str:
    metadata = obj.get("metadata")
    value = metadata.get(key) if isinstance(metadata, Mapping) else ""
    return value if isinstance(value, str) else ""
