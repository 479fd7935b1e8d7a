"""Match conditions of the webhooks in CEL, made of the rows by which the code itself finds pods, containers,
devices and keys: `tests/manifests/test_conditions.py` holds the two against each other.

An API server of Kubernetes 1.28 understands them: no optional fields, no quantities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from planner.manifests.pods.pod import AMOUNTS, CONTAINERS, INIT_CONTAINERS
from planner.model.resources import DEVICE_NAMES, DEVICE_PREFIXES, MISSPELT_DEVICES
from webhook.workloads import WorkloadKind
from webhook.workloads.keys.topology_keys import KEYS, OLD_SCOPE
from webhook.workloads.left_alone import ON_EACH_NODE
from webhook.workloads.shared_gangs.pod_groups import GROUP_ANNOTATIONS, KUEUE_GROUP, REFERENCES

OUR_PREFIX = "bayplan.dev/"
TOPOLOGY_ANNOTATIONS = tuple(
    name for name in (*(key.name for key in KEYS), OLD_SCOPE) if not name.startswith(OUR_PREFIX)
)
"""Annotations of others that ask for a place."""


def asking(kinds: Iterable[WorkloadKind]) -> str:
    """A CEL expression: an object of one of these kinds has pods that ask for GPUs, or carries our keys."""
    rows = tuple(kinds)
    specs = _merged(path for row in rows for path in row.pods.specs)
    metadata = _merged(path for row in rows for path in row.pods.metadata)
    return _any(
        (
            *(_through(path, gpus) for path in specs),
            keys("object.metadata"),
            *(_through(path, keys) for path in metadata),
        )
    )


def _merged(paths: Iterable[str]) -> list[str]:
    """The paths, those as one that differ in the name of a field alone: `spec.a|b{}.template`.

    An expression is long, and would stand there for each of them.
    """
    left = list(dict.fromkeys(paths))
    for place in range(max((path.count(".") for path in left), default=-1) + 1):
        alike: dict[tuple[str, ...], list[str]] = {}
        for path in left:
            steps = path.split(".")
            own = steps[place].rstrip("[]{}") if place < len(steps) else ""
            masked = (step.replace(own, "", 1) if i == place else step for i, step in enumerate(steps))
            alike.setdefault(tuple(masked), []).append(own)
        left = [
            ".".join(f"{'|'.join(names)}{step}" if i == place else step for i, step in enumerate(masked))
            for masked, names in alike.items()
        ]
    return left


def gpus(spec: str) -> str:
    """A CEL expression: this pod spec asks for a GPU or a part of one, or claims a device; or it misspells
    the name of one, of which somebody should be told.

    The pod's own resources are read as those of a further container. An amount of 0 asks for nothing.
    """
    lists = (f"(has({spec}.{name}) ? {spec}.{name} : [])" for name in (*CONTAINERS, INIT_CONTAINERS))
    # dyn: the API server takes no list whose items are of different types, and knows the type of `[spec]`.
    containers = ", ".join((f"dyn([{spec}])", *lists))
    device = _any(
        (
            f"k in {[*DEVICE_NAMES, *MISSPELT_DEVICES]}",
            *(f"k.startsWith('{name}')" for name in DEVICE_PREFIXES),
        )
    )
    stated = f"c.resources[a].exists(k, {device} && string(c.resources[a][k]) != '0')"
    asked = f"{list(AMOUNTS)}.exists(a, a in c.resources && {stated})"
    claims = f"(has({spec}.resourceClaims) && size({spec}.resourceClaims) > 0)"
    return f"[{containers}].exists(l, l.exists(c, has(c.resources) && {asked})) || {claims}"


def keys(metadata: str) -> str:
    """A CEL expression: these metadata carry a key that is ours to read."""
    ours = f"k.startsWith('{OUR_PREFIX}') || k in {list(TOPOLOGY_ANNOTATIONS)}"
    return f"has({metadata}.annotations) && {metadata}.annotations.exists(k, {ours})"


def member() -> str:
    """A CEL expression: the pod says of which gang it is, as a launcher or router without a GPU does."""
    names = [*GROUP_ANNOTATIONS, KUEUE_GROUP]
    places = ("object.metadata.annotations", "object.metadata.labels")
    key_checks = (f"has({place}) && {place}.exists(k, k in {names})" for place in places)
    return _any((*key_checks, *(f"has(object.spec.{reference[0]})" for reference in REFERENCES)))


def anywhere() -> str:
    """A CEL expression: the pod is not one of a DaemonSet, which has its node already."""
    owner = f"o.kind == '{ON_EACH_NODE}' && has(o.controller) && o.controller"
    return f"!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, {owner})"


def _any(alternatives: Iterable[str]) -> str:
    return f"({' || '.join(f'({part})' for part in alternatives)})"


def _through(path: str, condition: Callable[[str], str], place: str = "object") -> str:
    """The condition on what stands at a path of `PodPlaces`, wherever lists and mappings on the way lead."""
    guards = []
    first, _, rest = path.partition(".")
    while first:
        name = first.rstrip("[]{}")
        if "|" in name:
            field, following = f"{place}[f]", f"{first.removeprefix(name)}.{rest}".strip(".")
            inner = _through(following, condition, field)
            names = name.split("|")
            return " && ".join((*guards, f"{names}.exists(f, f in {place} && {inner})"))
        place = f"{place}.{name}" if name else place
        if name:
            guards.append(f"has({place})")
        if name != first:
            item = "i" if first.endswith("[]") else f"{place}[i]"
            # Nothing behind the list: its items themselves are meant.
            inner = _through(rest, condition, item) if rest else condition(item)
            return " && ".join((*guards, f"{place}.exists(i, {inner})"))
        first, _, rest = rest.partition(".")
    return " && ".join((*guards, f"({condition(place)})"))
