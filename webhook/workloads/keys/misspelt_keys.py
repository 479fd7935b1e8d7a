"""Finds keys that are similar to one of Bayplan's, KAI's, Kueue's or nod-ai's, such as
`topology-required-placment`.

Schedulers ignore unknown keys, so such a key causes a slow job rather than an error. Similar means that the
domain and the name each differ by a letter or two; keys of other systems are ignored. Device resources are
recognised from a list of common mistakes (`nvidia.com/shared-gpu`), and if a name is a slip away from one of
them or from what some node offers; other resources may have any name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from planner.manifests.pods.pod import AMOUNTS, CONTAINERS, INIT_CONTAINERS
from planner.model.resources import DEVICE_NAMES, DEVICE_PREFIXES, MISSPELT_DEVICES
from webhook.workloads.keys.known_keys import KNOWN_KEYS

DOMAINS = ("bayplan.dev", "kai.scheduler", "kueue.x-k8s.io", "topology.scheduler")
"""The domains whose keys are checked."""


_NEAR = 0.85
"""Minimum similarity of two names: one wrong letter in seven. Kueue's other keys stay below it."""


_NEAR_OWN = 0.7
"""The same for a name under our own domain, which nobody else uses."""


_NEAR_DOMAIN = 0.8
"""The same for domains: `kai.schedular`, `kueue.x-k8s.oi`, `kueue.k8s.io`."""


_TELLING = 12
"""Minimum length of a name that identifies a key without its domain: `queue` does not."""


_REAL = frozenset(
    (
        "kueue.x-k8s.io/managed",
        "kueue.x-k8s.io/pod-group-pod-index",
        "kueue.x-k8s.io/pod-group-pod-index-label",
        "kueue.x-k8s.io/pod-group-serving",
        "kueue.x-k8s.io/pod-group-fast-admission",
        "kueue.x-k8s.io/podset-slice-required-topology-constraints",
        "kueue.x-k8s.io/priority-class",
        "kueue.x-k8s.io/workload",
    )
)
"""Existing keys of these systems that are similar to ours and that Bayplan does not use."""


_FORMS: Mapping[str, frozenset[str]] = {
    key.name: frozenset(other.form for other in KNOWN_KEYS if other.name == key.name) for key in KNOWN_KEYS
}


_BY_DOMAIN: Mapping[str, tuple[str, ...]] = {
    domain: tuple(name.partition("/")[2] for name in _FORMS if name.startswith(domain + "/"))
    for domain in DOMAINS
}


def misspelt(metadata: Any) -> list[str]:
    """`keys.misspelt(metadata)`: a sentence for each annotation or label that is similar to a known
    key.
    """
    return [
        sentence
        for form, part in (("annotation", "annotations"), ("label", "labels"))
        for key in _keys(metadata, part)
        if (sentence := _fault(key, form))
    ]


def misspelt_resources(spec: Any, advertised: Mapping[str, Any]) -> list[str]:
    """`keys.misspeltResources(spec, cluster.resources)`: a sentence for each resource that a pod asks for
    under a name that is nearly a device's, or nearly what a node offers, where no node has that one."""
    asked_names = dict.fromkeys(name for asked in _asked(spec) for name in asked if name not in advertised)
    return [
        f"resource {name} is offered by no device plugin. What would work: {right}"
        for name in asked_names
        if (right := _device_meant(name, advertised))
    ]


_OTHER_DEVICES = frozenset(("nvidia.com/vgpu", "nvidia.com/pgpu"))
"""Devices of other plugins (virtual machines, shares of GPUs) that are a letter away from those we know."""


_SHORTEST = 3
"""Letters of a name or a domain from which on a slip in it is told: `rdma/ib` and `rdma/ic` are two."""


def _device_meant(name: str, advertised: Iterable[str]) -> str:
    """The device or resource that is probably meant, "" where none is near."""
    if name in MISSPELT_DEVICES:
        return MISSPELT_DEVICES[name]
    if name in _OTHER_DEVICES or name in DEVICE_NAMES or name.startswith(DEVICE_PREFIXES):
        return ""
    parts = name.lower().split("/")
    devices = (*DEVICE_NAMES, *(other for other in advertised if "/" in other))
    return next((other for other in devices if _is_slip(parts, other.lower().split("/"))), "")


def _is_slip(written: list[str], right: list[str]) -> bool:
    """Whether domain and name are each a slip away at most."""
    if len(written) != len(right) or _are_neighbours(written[-1], right[-1]):
        return False
    pairs = zip(written, right, strict=True)
    return all(text == other or (len(other) >= _SHORTEST and _one_edit(text, other)) for text, other in pairs)


def _are_neighbours(name: str, other: str) -> bool:
    """Whether names differ in a number or in their last sign alone, as those of two pools do."""
    in_number = _DIGITS.sub("", name) == _DIGITS.sub("", other)
    return name != other and (in_number or (len(name) == len(other) and name[:-1] == other[:-1]))


_DIGITS = re.compile("[0-9]+")


def _one_edit(text: str, other: str) -> bool:
    """Whether a letter too few, too many or wrong, or two that changed places, is all that differs."""
    shorter = min(len(text), len(other))
    start = next((place for place in range(shorter) if text[place] != other[place]), shorter)
    rest, other_rest = text[start:], other[start:]
    while rest and other_rest and rest[-1] == other_rest[-1]:
        rest, other_rest = rest[:-1], other_rest[:-1]
    return max(len(rest), len(other_rest)) < 2 or (len(rest) == 2 and rest == other_rest[::-1])


def _asked(spec: Any) -> Iterator[list[str]]:
    """The resources of which a pod spec asks for some, by each of its containers and as a whole."""
    pod = spec if isinstance(spec, Mapping) else {}
    lists = (pod.get(name) for name in (*CONTAINERS, INIT_CONTAINERS))
    every = [pod, *(item for items in lists if isinstance(items, list) for item in items)]
    for container in every:
        resources = container.get("resources") if isinstance(container, Mapping) else None
        for part in AMOUNTS:
            amounts = resources.get(part) if isinstance(resources, Mapping) else None
            if isinstance(amounts, Mapping):
                yield [str(name) for name, amount in amounts.items() if str(amount) != "0"]


def _keys(metadata: Any, part: str) -> list[str]:
    entries = metadata.get(part) if isinstance(metadata, Mapping) else None
    return [key for key in entries if isinstance(key, str)] if isinstance(entries, Mapping) else []


@lru_cache(maxsize=4096)
def _fault(key: str, form: str) -> str:
    """What is wrong with a key of this form, "" for nothing. The same few stand on every object."""
    forms = _FORMS.get(key)
    if forms is not None:
        if form in forms or not key.startswith(DOMAINS):
            return ""
        right = " and a ".join(sorted(forms))
        return f"{form} {key} is not read. What would work: the {right} of that name"
    right_key = meant(key)
    return f"{form} {key} is not read by anyone. What would work: {right_key}" if right_key else ""


def meant(key: str) -> str:
    """The key that is probably meant, "" where none is near."""
    domain, slash, name = key.rpartition("/")
    if key in _REAL or len(key) > _LONGEST:
        return ""
    if slash:
        near = max(DOMAINS, key=lambda candidate: _alike(domain, candidate))
        if _alike(domain, near) < _NEAR_DOMAIN:
            return ""
        bound = _NEAR_OWN if near == "bayplan.dev" else _NEAR
        if best := _nearest(name, _BY_DOMAIN[near], bound):
            return f"{near}/{best}"
    if len(name) < _TELLING:
        return ""
    domain_of = {candidate: other for other in reversed(DOMAINS) for candidate in _BY_DOMAIN[other]}
    best = _nearest(name, tuple(domain_of), _NEAR)
    return f"{domain_of[best]}/{best}" if len(best) >= _TELLING else ""


_LONGEST = 317
"""A key's longest domain, slash and name; what is longer is no key."""


def _nearest(name: str, names: tuple[str, ...], bound: float) -> str:
    """The most alike of these names, the first of several; "" where none comes up to the bound."""
    best = max(names, key=lambda candidate: _alike(name, candidate), default="")
    return best if best and _alike(name, best) >= bound else ""


def _alike(one_text: str, other_text: str) -> float:
    return SequenceMatcher(None, one_text, other_text, autojunk=False).ratio()
