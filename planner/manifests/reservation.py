"""Writes and reads Reservations as `bayplan.dev/v1alpha1` objects.

Besides amounts, a Reservation contains the properties of its pods that affect other gangs: labels,
anti-affinity terms, NUMA alignment, device claims (`ReservedPodTraits`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast, get_args

from planner.manifests.fields import integer, mapping, maps, sequence, strings, text, texts
from planner.manifests.requirements import SELECTOR_OPERATORS, requirement_from, requirement_json
from planner.model.claim_spec import (
    ClaimSpec,
    DeviceConstraint,
    DeviceRequest,
    claim_spec_json,
    claim_spec_of,
)
from planner.model.errors import InputError, Where
from planner.model.labels import Term, Toleration
from planner.model.pod import Alignment, ContainerRequest, PodTerm
from planner.model.podgroup import Assignment, HoldMode
from planner.model.reservation import Reservation, ReservedPodTraits, State, reservation_id
from planner.model.topology import Domain

API_VERSION = "bayplan.dev/v1alpha1"


_MODES: tuple[str, ...] = get_args(HoldMode)


_STATES: tuple[str, ...] = get_args(State)


def reservation_manifest(reservation: Reservation) -> dict[str, object]:
    """Returns the object for a reservation; `reservation_from` reads it back unchanged."""
    spec: dict[str, object] = {
        "gang": reservation.gang,
        "topology": reservation.topology,
        "level": reservation.level,
        "domain": list(reservation.domain),
        "mode": reservation.mode,
        "domains": [list(domain) for domain in reservation.domains],
        "nodes": sorted(reservation.nodes),
        "assignments": [
            {"podSet": a.pod_set, "node": a.node, "count": a.count} for a in reservation.assignments
        ],
        "requests": [
            {"podSet": pod_set, "perPod": dict(sorted(requests.items())), **_traits_of(reservation, pod_set)}
            for pod_set, requests in reservation.requests
        ],
        "fingerprint": reservation.fingerprint,
    }
    status: dict[str, object] = {
        "state": reservation.state,
        "created": reservation.created,
        "expires": reservation.expires,
        "ownerUID": reservation.owner_uid,
        "leftNodes": sorted(reservation.left_nodes),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "Reservation",
        "metadata": {"name": reservation.id},
        "spec": spec,
        "status": status,
    }


def _traits_of(reservation: Reservation, pod_set: str) -> dict[str, object]:
    traits = next((traits for name, traits in reservation.traits if name == pod_set), None)
    return {"traits": traits_json(traits)} if traits else {}


def reservation_from(document: Mapping[str, object], where: Where) -> Reservation:
    """Returns the reservation in an object. Raises `InputError`, which names the field."""
    spec = mapping(document.get("spec"), where.at_path("spec"))
    status = mapping(document.get("status"), where.at_path("status"))
    metadata = mapping(document.get("metadata"), where.at_path("metadata"))
    gang = text(spec.get("gang"), where.at_path("spec.gang"))
    if not gang:
        raise InputError("a reservation names its gang", where.at_path("spec.gang"))
    domains = sequence(spec.get("domains"), where.at_path("spec.domains"))
    return Reservation(
        id=text(metadata.get("name"), where.at_path("metadata.name")) or reservation_id(gang),
        gang=gang,
        topology=text(spec.get("topology"), where.at_path("spec.topology")),
        level=text(spec.get("level"), where.at_path("spec.level")),
        domain=strings(spec.get("domain"), where.at_path("spec.domain")),
        mode=_mode(spec, where.at_path("spec.mode")),
        domains=tuple(_domain(d, where.at_path(f"spec.domains[{i}]")) for i, d in enumerate(domains)),
        nodes=frozenset(strings(spec.get("nodes"), where.at_path("spec.nodes"))),
        assignments=tuple(_assignments(spec, where)),
        requests=tuple(_requests(spec, where)),
        fingerprint=text(spec.get("fingerprint"), where.at_path("spec.fingerprint")),
        created=_seconds(status.get("created"), where.at_path("status.created")) or 0.0,
        expires=_seconds(status.get("expires"), where.at_path("status.expires")),
        state=_state(status, where.at_path("status.state")),
        owner_uid=text(status.get("ownerUID"), where.at_path("status.ownerUID")),
        traits=tuple(_traits(spec, where)),
        left_nodes=frozenset(strings(status.get("leftNodes"), where.at_path("status.leftNodes"))),
    )


def _domain(value: object, where: Where) -> Domain:
    return strings(value, where)


def _mode(spec: Mapping[str, object], where: Where) -> HoldMode:
    mode = text(spec.get("mode"), where) or "domain"
    if mode in _MODES:
        return cast(HoldMode, mode)
    raise InputError(f"{mode!r} is no mode; use domain, nodes or none", where)


def _state(status: Mapping[str, object], where: Where) -> State:
    state = text(status.get("state"), where) or "held"
    if state in _STATES:
        return cast(State, state)
    raise InputError(f"{state!r} is no state; use held or claimed", where)


def _seconds(value: object, where: Where) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError("expected seconds since the epoch", where)
    return float(value)


def _assignments(spec: Mapping[str, object], where: Where) -> list[Assignment]:
    result: list[Assignment] = []
    for index, entry in enumerate(maps(spec.get("assignments"), where.at_path("spec.assignments"))):
        place = f"spec.assignments[{index}]"
        count = integer(entry.get("count"), where.at_path(f"{place}.count"))
        if count < 1:
            raise InputError(f"{count} is no number of pods; use 1 or more", where.at_path(f"{place}.count"))
        result.append(
            Assignment(
                text(entry.get("podSet"), where.at_path(f"{place}.podSet")),
                text(entry.get("node"), where.at_path(f"{place}.node")),
                count,
            )
        )
    return result


def _traits(spec: Mapping[str, object], where: Where) -> Iterator[tuple[str, ReservedPodTraits]]:
    for index, entry in enumerate(maps(spec.get("requests"), where.at_path("spec.requests"))):
        place = where.at_path(f"spec.requests[{index}].traits")
        if traits := traits_from(mapping(entry.get("traits"), place), place):
            yield text(entry.get("podSet"), place), traits


def _requests(spec: Mapping[str, object], where: Where) -> list[tuple[str, dict[str, int]]]:
    result: list[tuple[str, dict[str, int]]] = []
    for index, entry in enumerate(maps(spec.get("requests"), where.at_path("spec.requests"))):
        place = f"spec.requests[{index}]"
        per_pod = mapping(entry.get("perPod"), where.at_path(f"{place}.perPod"))
        amounts = {
            text(name, where.at_path(place)): integer(amount, where.at_path(f"{place}.perPod.{name}"))
            for name, amount in per_pod.items()
        }
        if any(amount < 0 for amount in amounts.values()):
            raise InputError("an amount is negative", where.at_path(f"{place}.perPod"))
        result.append((text(entry.get("podSet"), where.at_path(f"{place}.podSet")), amounts))
    return result


def terms_json(terms: tuple[PodTerm, ...]) -> list[dict[str, object]]:
    """Returns anti-affinity terms as plain JSON; `terms_from` reads them back."""
    return [
        {
            "key": term.key,
            "selector": [requirement_json(r) for r in term.selector],
            "namespaces": list(term.spaces),
            "everyNamespace": term.every,
            **({"namespaceSelector": [requirement_json(r) for r in term.among]} if term.among else {}),
        }
        for term in terms
    ]


def terms_from(data: object, where: Where) -> Iterator[PodTerm]:
    """Yields the anti-affinity terms that `terms_json` wrote. Raises `InputError`."""
    for entry in maps(data, where):
        yield PodTerm(
            text(entry.get("key"), where),
            _selector_from(entry.get("selector"), where),
            strings(entry.get("namespaces"), where),
            entry.get("everyNamespace") is True,
            among=_selector_from(entry.get("namespaceSelector"), where),
        )


def _selector_from(data: object, where: Where) -> Term:
    return tuple(requirement_from(entry, where, SELECTOR_OPERATORS) for entry in maps(data, where))


def claim_spec_from(data: Mapping[str, object], where: Where) -> ClaimSpec:
    """Returns the claim that `claim_spec_json` wrote. Raises `InputError`, which names the field."""
    choices = [
        [_device_request_from(request, where) for request in maps(choice, where)]
        for choice in sequence(data.get("requests"), where)
    ]
    rules = [
        DeviceConstraint(
            text(constraint.get("attribute"), where),
            constraint.get("distinct") is True,
            tuple(_pair(pair, where) for pair in sequence(constraint.get("requests"), where)),
        )
        for constraint in maps(data.get("constraints"), where)
    ]
    return claim_spec_of(choices, rules)


def _pair(value: object, where: Where) -> tuple[int, int]:
    # The zeros stand for missing entries of a list that is too short.
    request, alternative = (*(integer(part, where) for part in sequence(value, where)), 0, 0)[:2]
    return request, alternative


def _device_request_from(data: Mapping[str, object], where: Where) -> DeviceRequest:
    tolerations = []
    for toleration in sequence(data.get("tolerations"), where):
        key, operator, value, effect = (*strings(toleration, where), "", "", "", "")[:4]
        tolerations.append(Toleration(key, operator, value, effect))
    capacity = mapping(data.get("capacity"), where)
    return DeviceRequest(
        text(data.get("class"), where),
        strings(data.get("classSelectors"), where),
        strings(data.get("selectors"), where),
        integer(data.get("count"), where),
        data.get("adminAccess") is True,
        tuple(tolerations),
        tuple(sorted((str(name), integer(size, where)) for name, size in capacity.items())),
    )


def traits_json(traits: ReservedPodTraits) -> dict[str, object]:
    """Returns the traits as plain JSON; `traits_from` reads them back."""
    result: dict[str, object] = {}
    if traits.alignment is not None:
        result["aligned"] = {
            scope: [{"requests": dict(ask.requests), "stays": ask.stays} for ask in asks]
            for scope, asks in (("container", traits.alignment.containers), ("pod", traits.alignment.pod))
        }
    if traits.labels:
        result["labels"] = dict(sorted(traits.labels.items()))
    if traits.terms:
        result["antiAffinity"] = terms_json(traits.terms)
    if traits.claim_specs:
        result["claims"] = [claim_spec_json(claim_spec) for claim_spec in traits.claim_specs]
    return result


def traits_from(data: Mapping[str, object], where: Where) -> ReservedPodTraits:
    """Returns the traits that `traits_json` wrote. Raises `InputError`, which names the field."""
    labels = texts(data.get("labels"), where.below("labels"))
    terms = tuple(terms_from(data.get("antiAffinity"), where.below("antiAffinity")))
    place = where.below("claims")
    claim_specs = tuple(claim_spec_from(claim, place) for claim in maps(data.get("claims"), place))
    if data.get("aligned") is None:
        return ReservedPodTraits(None, labels, terms, claim_specs)
    scopes = mapping(data["aligned"], where.below("aligned"))
    alignment = Alignment(
        _aligned_requests(scopes, "container", where), _aligned_requests(scopes, "pod", where)
    )
    return ReservedPodTraits(alignment, labels, terms, claim_specs)


def _aligned_requests(scopes: Mapping[str, object], scope: str, where: Where) -> tuple[ContainerRequest, ...]:
    place = where.below(f"aligned.{scope}")
    return tuple(
        ContainerRequest(
            "",
            {name: integer(amount, place) for name, amount in mapping(entry.get("requests"), place).items()},
            entry.get("stays") is not False,
        )
        for entry in maps(scopes.get(scope), place)
    )
