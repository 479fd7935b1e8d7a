"""Exemptions (PolicyException): objects to which a policy does not apply until a given time. Pure.

A policy runs on an exempt object as usual, but its effects are undone and reported, so that the use of the
exemption is visible. An exemption that has ended has no effect, but a report says that it would have been
used. Refusals of the planner do not come from a policy, and cannot be exempted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.cel import CelError, CostBudget
from webhook.policy.model.match import labels_of
from webhook.policy.model.policy import PolicyException, like
from webhook.wire.request import AdmissionRequest

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Exempted:
    """The use of an exemption for one policy and one request.

    `message`: the policy's effect that was undone; if the exemption is `over`, the effect was not undone.
    """

    policy: str
    exemption: PolicyException
    message: str
    over: bool = False

    def __str__(self) -> str:
        row = self.exemption
        by = f"PolicyException {row.name}"
        if self.over:
            return f"policy {self.policy!r} applies again: {by} ended {row.ended} ({row.reason})"
        return f"policy {self.policy!r}: exempt until {row.ended} by {by} ({row.reason}); it {self.message}"


@dataclass(slots=True)
class Exemptions:
    """The exemptions that apply to one request, and those that were used: `used`, by the policy's name and
    whether the exemption has ended.
    """

    of_request: Sequence[PolicyException]
    now: float
    used: dict[tuple[str, bool], Exempted] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        all_exemptions: Iterable[PolicyException],
        request: AdmissionRequest,
        now: float,
        budget: CostBudget,
    ) -> Exemptions:
        """Returns the exemptions that match the request; none if there is no clock (`now` is infinite)."""
        if now == float("inf"):
            return cls((), now)
        return cls(tuple(row for row in all_exemptions if concerns(row, request, budget)), now)

    def record_use(self, policy: str, outcome: Callable[[], str]) -> bool:
        """Records the use of an exemption from a policy. Returns whether the caller must undo the effect of
        the policy.

        The caller must undo it if an exemption is current. If all have ended, the record says that the one
        which ended last would have been used. `outcome` returns the effect as text.
        """
        for over in (False, True):
            exemption = self._last_to_end(policy, over=over)
            if exemption is not None:
                self.used.setdefault((policy, over), Exempted(policy, exemption, outcome(), over))
                return not over
        return False

    def _last_to_end(self, policy: str, *, over: bool) -> PolicyException | None:
        """Returns the exemption from a policy that ends last, of those that have ended (`over`) or of the
        others; None if there is none.
        """
        rows = (row for row in self.of_request if row.covers(policy) and row.is_over(self.now) is over)
        return max(rows, key=lambda row: (row.until, row.name), default=None)

    @property
    def outcomes(self) -> tuple[Exempted, ...]:
        """The exemptions that were used, in the order in which the policies ran."""
        return tuple(self.used.values())


def concerns(exemption: PolicyException, request: AdmissionRequest, budget: CostBudget) -> bool:
    """Returns whether the exemption applies to a request.

    Kind and name are those of the object or of its controller, so that the pods of an exempt Job are exempt
    too. The exemption does not apply if one of its conditions ends in an error; each has the whole `budget`.
    """
    for patterns, texts in (
        (exemption.namespaces, (request.namespace,)),
        (exemption.users, (request.user_info.username,)),
        (exemption.groups, request.user_info.groups),
    ):
        if patterns and not any(like(text, patterns) for text in texts):
            return False
    if not any(_is_named(exemption, *identity) for identity in _identities(request)):
        return False
    shown = [labels_of(item) for item in (request.object, request.old_object) if item is not None]
    if not any(exemption.selector.matches(labels) for labels in shown or [{}]):
        return False
    if request.namespace and not exemption.namespace_selector.matches(request.namespace_labels):
        return False
    return _conditions_hold(exemption, request, budget)


def _conditions_hold(exemption: PolicyException, request: AdmissionRequest, budget: CostBudget) -> bool:
    if not exemption.conditions:
        return True
    bindings = {
        "object": request.object,
        "oldObject": request.old_object,
        "request": request.as_cel(),
        "namespaceObject": request.namespace_object if request.namespace else None,
    }
    budget.renew()
    try:
        return all(row.expression.evaluate(bindings, budget) is True for row in exemption.conditions)
    except CelError:
        return False


def _identities(request: AdmissionRequest) -> Iterable[tuple[str, str]]:
    """Yields kind and name of the object and of its controller."""
    obj = request.object or request.old_object or {}
    metadata = obj.get("metadata")
    head = metadata if isinstance(metadata, Mapping) else {}
    yield request.kind.kind, request.name or str(head.get("name") or head.get("generateName") or "")
    owners = head.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller") is True:
            yield str(owner.get("kind", "")), str(owner.get("name", ""))


def _is_named(exemption: PolicyException, kind: str, name: str) -> bool:
    kinds, names = exemption.kinds, exemption.names
    return (not kinds or like(kind, kinds)) and (not names or like(name, names))
