"""The values of the CEL variable `cluster` about hardware and limits. Plain JSON.

- `numa`: for every node: labels, taints, allocatable, the Topology Manager's `policy` ("none" if the kubelet
  is not known to refuse pods that it cannot align) and `scope`, and NUMA `zones`; the list is empty if no
  node has a NodeResourceTopology, and no kubelet is known to refuse pods
- `claims`: what ResourceClaims and ResourceClaimTemplates request, and the template of each ComputeDomain, by
  NAMESPACE/NAME
- `cliques`: by node name, the clique of nodes on multi-node NVLink (`<ClusterUUID>.<CliqueID>`, a label of
  GPU feature discovery)
- `limits`: by namespace, the bounds of its LimitRanges (`ranges`), and of its ResourceQuotas the hard limits
  and what is left (`quotas`)
- `runtimeClasses`: by name, what each RuntimeClass adds to its pods: `overhead`, `nodeSelector`,
  `tolerations`
- `migNodes`: each combination of MIG slices into which nodes are divided, with product and number of nodes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from planner.cluster.facts import fact
from planner.cluster.infrastructure import Infrastructure
from planner.cluster.snapshot import Snapshot
from planner.devices.claims import Claims, ResourceClaim
from planner.model.node import Node
from planner.model.resources import CLIQUE_LABEL, MIG_PREFIX, PRODUCT_LABEL


def _all_numa(snapshot: Snapshot) -> list[dict[str, object]]:
    base = snapshot.base
    return [_numa(node, base) for node in snapshot.nodes.values()] if base.numa or base.aligns else []


def _cliques(snapshot: Snapshot) -> dict[str, str]:
    labelled = ((name, node.labels.get(CLIQUE_LABEL, "")) for name, node in snapshot.nodes.items())
    return {name: clique for name, clique in labelled if clique}


def _numa(node: Node, base: Infrastructure) -> dict[str, object]:
    refusing, published = base.aligned(node), base.numa.get(node.name)
    zones = refusing or published
    return {
        "node": node.name,
        "labels": node.labels,
        "taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.lasting_taints],
        "allocatable": {**node.allocatable, **node.pending},
        "policy": refusing.policy if refusing else "none",
        "scope": refusing.scope if refusing else "container",
        "zones": [
            {"name": zone.name, "allocatable": zone.allocatable, "available": zone.available}
            for zone in (zones.zones if zones else ())
        ],
    }


def _mig_nodes(snapshot: Snapshot) -> list[dict[str, object]]:
    """Returns each combination of product and MIG slices that nodes have, with the number of these nodes, in
    the order in which the nodes first have them.
    """
    counts: dict[tuple[str, tuple[tuple[str, int], ...]], int] = {}
    for node in snapshot.nodes.values():
        offers = {**node.allocatable, **node.pending}
        slices = sorted(
            (name.removeprefix(MIG_PREFIX), count) for name, count in offers.items() if _is_slice(name, count)
        )
        if slices:
            key = (node.labels.get(PRODUCT_LABEL, ""), tuple(slices))
            counts[key] = counts.get(key, 0) + 1
    return [
        {"product": product, "slices": dict(slices), "nodes": count}
        for (product, slices), count in counts.items()
    ]


def _is_slice(resource: str, count: int) -> bool:
    return resource.startswith(MIG_PREFIX) and count > 0


def _limits(snapshot: Snapshot) -> dict[str, dict[str, list[dict[str, object]]]]:
    by_namespace: dict[str, dict[str, list[dict[str, object]]]] = {}
    for key, bounds in snapshot.base.bounds.items():
        for bound in bounds:
            entry: dict[str, object] = {
                "name": bound.name,
                "type": bound.type,
                "min": bound.minimum,
                "max": bound.maximum,
            }
            _limits_of(by_namespace, key)["ranges"].append(entry)
    for key, quota in snapshot.base.quotas.items():
        _limits_of(by_namespace, key)["quotas"].append(
            {"name": quota.name, "hard": quota.hard, "left": quota.left}
        )
    return by_namespace


def _runtime_classes(snapshot: Snapshot) -> dict[str, dict[str, object]]:
    return {
        name: {
            "overhead": dict(own.overhead),
            "nodeSelector": dict(own.node_selector),
            "tolerations": [
                {"key": t.key, "operator": t.operator, "value": t.value, "effect": t.effect}
                for t in own.tolerations
            ],
        }
        for name, own in snapshot.base.runtime_classes.by_name.items()
    }


def _limits_of(
    by_namespace: dict[str, dict[str, list[dict[str, object]]]], key: str
) -> dict[str, list[dict[str, object]]]:
    return by_namespace.setdefault(key.split("/")[0], {"ranges": [], "quotas": []})


def claims_json(claims: Claims) -> dict[str, object]:
    """Returns `{"claims": {name: [{class, count}]}, "templates": …, "domains": {name: template}}`."""
    return {
        "claims": _RequestsByName(claims.claims),
        "templates": _RequestsByName(claims.templates),
        "domains": dict(claims.domains),
    }


class _RequestsByName(Mapping[str, object]):
    """What each claim requests, computed on access: of 20,000 claims, policies read those of one pod."""

    def __init__(self, claims: Mapping[str, ResourceClaim]) -> None:
        self._claims = claims

    def __getitem__(self, name: str) -> object:
        return _requests(self._claims[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._claims)

    def __len__(self) -> int:
        return len(self._claims)


def _requests(claim: ResourceClaim) -> list[dict[str, object]]:
    return [{"class": request.device_class, "count": request.count} for request in claim.requests]


HARDWARE_OF_NODES: dict[str, Callable[[Snapshot], object]] = {"migNodes": _mig_nodes, "cliques": _cliques}
"""Functions that compute the values that depend only on nodes, by key."""


OF_RECORDS: dict[str, tuple[Callable[[Snapshot], object], tuple[str, ...]]] = {
    "numa": (_all_numa, ("numa",)),
    "claims": (
        lambda snapshot: claims_json(snapshot.base.claims),
        ("claims.claims", "claims.templates", "claims.domains"),
    ),
    "limits": (_limits, ("bounds", "quotas")),
    "runtimeClasses": (_runtime_classes, ("runtime_classes.by_name",)),
}
"""By key, the functions that compute the values that also depend on records of objects, each with the paths
of these records (`planner.cluster.facts.RECORDS`).
"""


class SameRecords:
    """A cache key for the records of a snapshot under these paths: equal while they are the same mappings."""

    def __init__(self, base: Infrastructure, paths: Iterable[str]) -> None:
        self._mappings = [fact(base, path) for path in paths]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SameRecords):
            return NotImplemented
        pairs = zip(self._mappings, other._mappings, strict=True)
        return all(mapping is other_mapping for mapping, other_mapping in pairs)

    def __hash__(self) -> int:
        return hash(tuple(map(id, self._mappings)))
