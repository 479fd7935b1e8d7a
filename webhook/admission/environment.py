"""The inputs of a decision that come from the cluster besides the snapshot: namespaces, parameters,
PodGroups, permissions.

On the command line they come from cluster files, in a cluster from watches. Nothing here does I/O: the caller
passes an `Access`, which queries the API server. The types of the inputs can be imported from here too, by
code that provides the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from planner.model.effort.deadline import no_deadline
from webhook.admission.configuration.parameters import MOST_TOLD, Parameters, read_parameters
from webhook.admission.configuration.settings import Settings, default_settings
from webhook.admission.modes import ModeInForce, mode_in_force
from webhook.cel.libraries.authorizer import Access, AccessDecision, Authorizer, Query, Unavailable
from webhook.placement.fair_order import WaitingGang
from webhook.placement.group_members import GroupMember
from webhook.placement.stored_members import StoredMembers, no_members
from webhook.policy.engine.inputs import FileParams, Params
from webhook.policy.model.parameters import is_parameters
from webhook.policy.model.policy import CONFIG_MAP, ParamKind, PolicySet
from webhook.wire.request import AdmissionRequest, UserInfo
from webhook.workloads import Workload

__all__ = [
    "NAMESPACE",
    "Access",
    "AccessDecision",
    "Environment",
    "GroupMember",
    "PolicySet",
    "Query",
    "Workload",
    "namespaces",
    "no_access",
    "no_skip",
    "own_parameters",
    "pod_groups",
]

Json = Mapping[str, Any]

NAMESPACE = "bayplan-system"
"""The namespace of Bayplan's own objects; `bayplan serve --namespace` sets another one."""

_NOT_KEPT = ("Node", "Pod", "Event", "Lease")
"""Kinds that are not kept as possible parameters: a cluster has very many such objects, and no policy uses
them as parameters."""

_NO_PARAMS = FileParams(())


def no_access(user: UserInfo) -> Access:
    """Returns the `Access` without a cluster, which cannot check any permission."""
    return Unavailable()


def no_skip(owner: str) -> bool:
    """Stands in for `Environment.skips` if owners are unknown: returns False."""
    return False


@dataclass(frozen=True, slots=True)
class Environment:
    """What a decision needs from the cluster besides the snapshot.

    `namespaces`: Namespace objects by name. `params`: returns parameter objects of a kind. `access`: returns
    the permissions of a user. `podgroups`: PodGroup and Workload objects, to which pods refer, by namespace
    and name. `members`: pods of such groups that are applied together and not stored yet. `sharing`: by the
    name of an object, all members of its gang, if they are applied together (`bayplan mutate` reads whole
    files). `stored_members`: returns the stored objects of a gang. `waiting`: returns the waiting gangs,
    unordered; some may hold a place already. `skips`: returns whether an owner NAMESPACE/KIND/NAME, or one
    above it, opts out of planning. `fenced`: reserved domains are tainted. `settings`: returns the settings
    of a namespace. `configured`: the cluster's ConfigMap `bayplan-parameters`. `parameters`: the parameters
    in force; None until `with_parameters`. `rivals`: an estimate of how many other calls may choose the same
    places now (`webhook.server.rivals`). `late`: returns whether the deadline has passed; all long work calls
    it. `now`: seconds since the epoch, for the order of the queue; if infinite, a new gang is last.
    """

    namespaces: Mapping[str, Json] = field(default_factory=dict)
    params: Params = _NO_PARAMS
    access: Callable[[UserInfo], Access] = no_access
    podgroups: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    members: Sequence[GroupMember] = ()
    sharing: Mapping[str, Sequence[Workload]] = field(default_factory=dict)
    stored_members: StoredMembers = no_members
    waiting: Callable[[], Sequence[WaitingGang]] = tuple
    skips: Callable[[str], bool] = no_skip
    fenced: bool = False
    settings: Callable[[str], Settings] = default_settings
    configured: Json | None = None
    parameters: Parameters | None = None
    rivals: int = 0
    late: Callable[[], bool] = no_deadline
    now: float = math.inf

    @classmethod
    def of_objects(
        cls, objects: Iterable[Json], settings: Callable[[str], Settings] = default_settings
    ) -> Environment:
        """Returns the environment of cluster files: Namespaces, and every other object as a possible
        parameter.

        `settings`: returns the settings of a namespace for keys that the files do not set.
        """
        kept = tuple(obj for obj in objects if obj.get("kind") not in _NOT_KEPT)
        configured = own_parameters(kept)
        # Reads the parameters here too, for commands that read no policies.
        settings_by_namespace = partial(read_parameters(PolicySet(), configured)[0].settings, settings)
        return cls(
            namespaces(kept),
            FileParams(kept),
            podgroups=pod_groups(kept),
            settings=settings_by_namespace,
            configured=configured,
        )

    def with_namespace(self, request: AdmissionRequest) -> AdmissionRequest:
        """Returns the request with its Namespace object, if that is known."""
        namespace = self.namespaces.get(request.namespace)
        return request if namespace is None else replace(request, namespace_object=namespace)

    def with_parameters(self, parameters: Parameters) -> Environment:
        """Returns the environment with these parameters in force, and the settings that they state."""
        return replace(self, parameters=parameters, settings=partial(parameters.settings, self.settings))

    def with_policy_parameters(self, policies: PolicySet) -> Environment:
        """Returns the environment with the parameters in force: those beside the policies, overridden by
        `configured`.

        Invalid settings are left out; to report them, `read_parameters` also returns the problems.
        """
        return self.with_parameters(read_parameters(policies, self.configured)[0])

    def params_in(self, namespace: str, policies: PolicySet) -> Params:
        """Returns the parameter objects of policies for a namespace: from the policy files, then from
        `params`.
        """
        own = self.parameters.object(namespace) if self.parameters is not None else None
        return _RequestParams(own, FileParams(policies.params), self.params)

    def mode(self, request: AdmissionRequest) -> ModeInForce:
        """Returns the mode of the request's namespace; for a Namespace object, the mode that it will have."""
        itself = request.kind.kind == "Namespace" and request.object is not None
        namespace = request.object if itself else self.with_namespace(request).namespace_object
        return mode_in_force(namespace, self.settings(request.namespace))

    def observed(self, names: Iterable[str]) -> frozenset[str]:
        """Returns the namespaces among `names` whose mode is not `enforce`."""
        forces = {name: mode_in_force(self.namespaces.get(name), self.settings(name)) for name in set(names)}
        return frozenset(name for name, force in forces.items() if not force.enforces)

    def wrong_labels(self) -> list[str]:
        """Returns the problems of the namespaces' mode labels as text, at most `MOST_TOLD`."""
        forces = (mode_in_force(space, self.settings(name)) for name, space in self.namespaces.items())
        return list(islice(filter(None, (force.warning for force in forces)), MOST_TOLD))

    def authorizer(self, user: UserInfo) -> Authorizer:
        """Returns the CEL variable `authorizer` for the user of a request."""
        return Authorizer(self.access(user))


def namespaces(objects: Iterable[Json]) -> dict[str, Json]:
    """Returns the Namespace objects, by name."""
    return {_name(obj): obj for obj in objects if obj.get("kind") == "Namespace"}


def pod_groups(objects: Iterable[Json]) -> dict[tuple[str, str], Json]:
    """Returns the PodGroup and Workload objects, which define gangs of pods, by namespace and name."""
    return {
        (_meta(obj, "namespace") or "default", _name(obj)): obj
        for obj in objects
        if obj.get("kind") == "PodGroup"
        or (obj.get("kind") == "Workload" and str(obj.get("apiVersion", "")).startswith("scheduling.k8s.io/"))
    }


def own_parameters(objects: Iterable[Json]) -> Json | None:
    """Returns the ConfigMap `bayplan-parameters` of Bayplan's namespace, otherwise the one that states no
    namespace; None if there is neither."""
    by_namespace = {_meta(obj, "namespace"): obj for obj in objects if is_parameters(obj)}
    return by_namespace.get(NAMESPACE, by_namespace.get(""))


@dataclass(frozen=True, slots=True)
class _RequestParams:
    """Parameter objects of two sources. If both have an object with the same name, that of `first` counts.

    `own`: the ConfigMap `bayplan-parameters` in force for the request; objects of this name in the sources
    are ignored.
    """

    own: Json | None
    first: Params
    second: Params
    # Cached because the policies of a set ask for the same kind about fifty times in a request.
    _by_kind: dict[ParamKind, Sequence[Json]] = field(default_factory=dict, compare=False, repr=False)

    def objects(self, kind: ParamKind) -> Sequence[Json]:
        if kind not in self._by_kind:
            merged = (*self.second.objects(kind), *self.first.objects(kind))
            objects = {_key(obj): obj for obj in merged if not is_parameters(obj)}
            own = [self.own] if self.own is not None and kind == CONFIG_MAP else []
            self._by_kind[kind] = [*objects.values(), *own]
        return self._by_kind[kind]


def _key(obj: Json) -> tuple[str, str]:
    return _meta(obj, "namespace"), _meta(obj, "name")


def _name(obj: Json) -> str:
    return _meta(obj, "name")


def _meta(obj: Json, key: str) -> str:
    metadata = obj.get("metadata")
    value = metadata.get(key) if isinstance(metadata, Mapping) else ""
    return value if isinstance(value, str) else ""
