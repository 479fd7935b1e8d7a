"""The inputs of a decision that come from the cluster besides the snapshot: namespaces, parameters,
PodGroups, permissions.

On the command line they come from cluster files, in a cluster from watches. Nothing here does I/O: the caller
hands in an `Access` that queries the API server. The types of the inputs are offered here too, for those who
provide them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from planner.model.deadline import never
from webhook.admission.configuration.parameters import MOST_TOLD, Parameters, read_parameters
from webhook.admission.configuration.settings import Settings, default_settings
from webhook.admission.modes import ModeInForce, mode_in_force
from webhook.cel.libraries.authorizer import Access, AccessDecision, Authorizer, Query, Unavailable
from webhook.placement.fair_order import WaitingGang
from webhook.placement.group_members import GroupMember
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
"""Kinds that are not kept as possible parameters: a cluster has very many, and no policy uses them."""


_NO_PARAMS = FileParams(())


def no_access(user: UserInfo) -> Access:
    """Returns the permissions where there is no cluster: none can be checked."""
    return Unavailable()


def no_skip(owner: str) -> bool:
    """Stands in for `skips` where owners are unknown: returns that none is skipped."""
    return False


@dataclass(frozen=True, slots=True)
class Environment:
    """`namespaces` by name; `params` gives objects of a kind; `access` answers for one user.

    `podgroups`: PodGroup and Workload objects by namespace and name, which pods refer to. `members`: pods of
    such groups that are in no cluster yet. `sharing`: by an object's name the members of the gang that it
    shares in, all known beforehand. `waiting` gives the queue, in order. `skips`: whether the owner
    NAMESPACE/KIND/NAME, or one above it, leaves the plan. `fenced`: reserved domains carry a taint.
    `settings`: those in force for a namespace. `configured`: Bayplan's own ConfigMap as the cluster has it.
    `parameters`: that and the files beside the policies, read; None until `with_parameters`. `rivals`:
    about how many calls reserve places at the same moment. `late`: whether the time of the decision is over;
    it is asked inside all long work. `now`: seconds since the epoch, by which the queue has an order; without
    it what is applied comes last.
    """

    namespaces: Mapping[str, Json] = field(default_factory=dict)
    params: Params = _NO_PARAMS
    access: Callable[[UserInfo], Access] = no_access
    podgroups: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    members: Sequence[GroupMember] = ()
    sharing: Mapping[str, Sequence[Workload]] = field(default_factory=dict)
    waiting: Callable[[], Sequence[WaitingGang]] = tuple
    skips: Callable[[str], bool] = no_skip
    fenced: bool = False
    settings: Callable[[str], Settings] = default_settings
    configured: Json | None = None
    parameters: Parameters | None = None
    rivals: int = 0
    late: Callable[[], bool] = never
    now: float = math.inf

    @classmethod
    def of_objects(
        cls, objects: Iterable[Json], settings: Callable[[str], Settings] = default_settings
    ) -> Environment:
        """Returns the environment of cluster files: Namespaces, and every other object as a possible
        parameter.

        `settings`: those in force where the files set none.
        """
        kept = tuple(obj for obj in objects if obj.get("kind") not in _NOT_KEPT)
        configured = own_parameters(kept)
        # Commands that read no policies need the cluster's settings too.
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

    def beside(self, policies: PolicySet) -> Environment:
        """Returns the environment with the parameters in force: those in the policy files, overridden by
        `configured`.

        Invalid entries are left out; `read_parameters` returns them too, for callers that report them.
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
        """Returns the namespaces among `names` in which nothing is enforced."""
        forces = {name: mode_in_force(self.namespaces.get(name), self.settings(name)) for name in set(names)}
        return frozenset(name for name, force in forces.items() if not force.enforces)

    def wrong_labels(self) -> list[str]:
        """Returns the problems of the namespaces' mode labels, at most `MOST_TOLD`."""
        forces = (mode_in_force(space, self.settings(name)) for name, space in self.namespaces.items())
        return list(islice(filter(None, (force.warning for force in forces)), MOST_TOLD))

    def authorizer(self, user: UserInfo) -> Authorizer:
        """Returns the CEL variable `authorizer` for the user of a request."""
        return Authorizer(self.access(user))


def namespaces(objects: Iterable[Json]) -> dict[str, Json]:
    """The Namespace objects, by name."""
    return {_name(obj): obj for obj in objects if obj.get("kind") == "Namespace"}


def pod_groups(objects: Iterable[Json]) -> dict[tuple[str, str], Json]:
    """Returns the PodGroup and Workload objects, which define gangs of pods, by namespace and name."""
    return {
        (_meta(obj, "namespace") or "default", _name(obj)): obj
        for obj in objects
        if obj.get("kind") == "PodGroup"
        or (obj.get("kind") == "Workload" and str(obj.get("apiVersion", "")).startswith("scheduling.k8s.io/"))
    }


def own_parameters(objects: Iterable[Json], namespace: str = NAMESPACE) -> Json | None:
    """Returns ConfigMap `bayplan-parameters` of Bayplan's namespace, or else the one without a namespace."""
    by_namespace = {_meta(obj, "namespace"): obj for obj in objects if is_parameters(obj)}
    return by_namespace.get(namespace, by_namespace.get(""))


@dataclass(frozen=True, slots=True)
class _RequestParams:
    """Parameter objects of two sources; where both have an object, that of `first` counts. Bayplan's own
    ConfigMap, `own`, is taken as it is in force for the request.
    """

    own: Json | None
    first: Params
    second: Params
    # The policies of a set ask for the same kind about fifty times in a request.
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
