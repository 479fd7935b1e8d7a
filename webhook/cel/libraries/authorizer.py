"""The variable `authorizer`: whether the user or a service account is allowed to do something.

In a cluster, the host implements `Access` with SubjectAccessReview and binds `Authorizer(access)`. Offline,
every decision is an error ("not available"), and `allowed()` raises it: it is never a silent no.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from webhook.cel.compiler.functions import Overload, overload
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import register_type


@dataclass(frozen=True, slots=True)
class Query:
    """A request to authorize: a non-resource path or a resource, for the user or for a service account.

    `service_account`: namespace and name, None for the user.
    """

    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    verb: str = ""
    service_account: tuple[str, str] | None = None
    field_selector: str = ""
    label_selector: str = ""


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """The decision on a query. `error`: why there is no decision, "" if there is one."""

    granted: bool
    reason: str = ""
    error: str = ""


class Access(Protocol):
    """Decides queries. The host implements it, for example from results that it fetched before."""

    def check(self, query: Query) -> AccessDecision:
        """Returns the decision on one query. Never raises."""


class Unavailable:
    """The `Access` without a cluster."""

    def check(self, query: Query) -> AccessDecision:
        """Returns a decision with an error."""
        return AccessDecision(False, error="authorization is not available offline")


@dataclass(frozen=True, slots=True)
class Authorizer:
    """The value of the CEL variable `authorizer`. `query`: the part of the query that is known so far."""

    access: Access = field(default_factory=Unavailable)
    query: Query = Query()


@dataclass(frozen=True, slots=True)
class PathCheck:
    """The value of `authorizer.path(…)`."""

    access: Access
    query: Query


@dataclass(frozen=True, slots=True)
class GroupCheck:
    """The value of `authorizer.group(…)`."""

    access: Access
    query: Query


@dataclass(frozen=True, slots=True)
class ResourceCheck:
    """The value of `authorizer.group(…).resource(…)`, which may have a subresource, namespace, name and
    selectors.
    """

    access: Access
    query: Query


for _class, _name in (
    (Authorizer, "kubernetes.authorization.Authorizer"),
    (PathCheck, "kubernetes.authorization.PathCheck"),
    (GroupCheck, "kubernetes.authorization.GroupCheck"),
    (ResourceCheck, "kubernetes.authorization.ResourceCheck"),
    (AccessDecision, "kubernetes.authorization.Decision"),
):
    register_type(_class, _name)


def _check(of: Any, verb: str) -> AccessDecision:
    decision: AccessDecision = of.access.check(replace(of.query, verb=verb))
    return decision


def _allowed(decision: AccessDecision) -> bool:
    if decision.error:
        raise FunctionError(decision.error)
    return decision.granted


def _narrow(field: str) -> Any:
    return lambda of, value: replace(of, query=replace(of.query, **{field: value}))


def _account(of: Authorizer, namespace: str, name: str) -> Authorizer:
    return replace(of, query=replace(of.query, service_account=(namespace, name)))


_A: Final = "kubernetes.authorization"
OVERLOADS: Final[tuple[Overload, ...]] = (
    overload(
        f"<{_A}.Authorizer>.path(string) -> {_A}.PathCheck",
        lambda of, path: PathCheck(of.access, replace(of.query, path=path)),
    ),
    overload(
        f"<{_A}.Authorizer>.group(string) -> {_A}.GroupCheck",
        lambda of, group: GroupCheck(of.access, replace(of.query, group=group)),
    ),
    overload(f"<{_A}.Authorizer>.serviceAccount(string, string) -> {_A}.Authorizer", _account),
    overload(
        f"<{_A}.GroupCheck>.resource(string) -> {_A}.ResourceCheck",
        lambda of, resource: ResourceCheck(of.access, replace(of.query, resource=resource)),
    ),
    overload(f"<{_A}.ResourceCheck>.subresource(string) -> {_A}.ResourceCheck", _narrow("subresource")),
    overload(f"<{_A}.ResourceCheck>.namespace(string) -> {_A}.ResourceCheck", _narrow("namespace")),
    overload(f"<{_A}.ResourceCheck>.name(string) -> {_A}.ResourceCheck", _narrow("name")),
    overload(f"<{_A}.ResourceCheck>.fieldSelector(string) -> {_A}.ResourceCheck", _narrow("field_selector")),
    overload(f"<{_A}.ResourceCheck>.labelSelector(string) -> {_A}.ResourceCheck", _narrow("label_selector")),
    overload(f"<{_A}.PathCheck>.check(string) -> {_A}.Decision", _check),
    overload(f"<{_A}.ResourceCheck>.check(string) -> {_A}.Decision", _check),
    overload(f"<{_A}.Decision>.allowed() -> bool", _allowed),
    overload(f"<{_A}.Decision>.reason() -> string", lambda decision: decision.reason),
    overload(f"<{_A}.Decision>.errored() -> bool", lambda decision: bool(decision.error)),
    overload(f"<{_A}.Decision>.error() -> string", lambda decision: decision.error),
)
