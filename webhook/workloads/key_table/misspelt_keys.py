"""Finds keys that are similar to one of Bayplan's, KAI's, Kueue's or nod-ai's, such as
`topology-required-placment`.

Schedulers ignore unknown keys, so such a key causes a slow job rather than an error. A key is similar if its
domain is similar to one of `DOMAINS` and its name to a name there (`_NEAR_DOMAIN`, `_NEAR`). A long name with
such a domain, or without a domain, is also compared with the names of all domains. Keys with other domains
are ignored. The name of a resource is taken for a mistake if it is in a list of common mistakes
(`nvidia.com/shared-gpu`), or if it is one slip (`_one_edit`) away from a device's or from a resource that
some node offers; other names are valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from planner.manifests.pods.pod import AMOUNTS, CONTAINERS, INIT_CONTAINERS
from planner.model.resources import DEVICE_NAMES, DEVICE_PREFIXES, MISSPELT_DEVICES
from webhook.workloads.key_table.known_keys import KNOWN_KEYS

DOMAINS = ("bayplan.dev", "kai.scheduler", "kueue.x-k8s.io", "topology.scheduler")
"""The domains whose keys are checked."""


_NEAR = 0.85
"""Minimum similarity of two names: one wrong letter in seven. Kueue's other keys stay below it, apart from
those in `_REAL`."""


_NEAR_OWN = 0.7
"""The same for a name in the domain bayplan.dev: lower, because it has no keys of other systems."""


_NEAR_DOMAIN = 0.8
"""The same for domains: `kai.schedular`, `kueue.x-k8s.oi`, `kueue.k8s.io`."""


_TELLING = 12
"""Minimum length of a key's name that is compared with the names of all domains. This is done if the key has
no domain, or if no name of its own domain is similar. Shorter names (`queue`) may be keys of any system.
"""


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
"""Existing keys of these systems that are similar to keys of users."""


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
    """`keys.misspeltResources(spec, cluster.resources)`: a sentence for each resource requested by a pod that
    no node offers and whose name is similar to a device's, or to a resource that some node offers.
    """
    asked_names = dict.fromkeys(name for asked in _asked(spec) for name in asked if name not in advertised)
    return [
        f"resource {name} is offered by no device plugin. What would work: {right}"
        for name in asked_names
        if (right := _device_meant(name, advertised))
    ]


_OTHER_DEVICES = frozenset(("nvidia.com/vgpu", "nvidia.com/pgpu"))
"""Devices of other plugins (for virtual machines and shares of GPUs) whose names differ from a known device
by one letter.
"""


_SHORTEST = 3
"""Minimum length of a name or domain in which a slip is recognised: `rdma/ib` and `rdma/ic` can both exist.
"""


def _device_meant(name: str, advertised: Iterable[str]) -> str:
    """Returns the device or resource that is probably meant; "" if none is similar."""
    if name in MISSPELT_DEVICES:
        return MISSPELT_DEVICES[name]
    if name in _OTHER_DEVICES or name in DEVICE_NAMES or name.startswith(DEVICE_PREFIXES):
        return ""
    parts = name.lower().split("/")
    devices = (*DEVICE_NAMES, *(other for other in advertised if "/" in other))
    return next((other for other in devices if _is_slip(parts, other.lower().split("/"))), "")


def _is_slip(written: list[str], right: list[str]) -> bool:
    """Returns whether domain and name each differ by one slip (`_one_edit`) at most.

    Neighbours such as `rdma/hca_devices_a` and `…_b` can both exist, so they count as different names.
    """
    if len(written) != len(right) or _are_neighbours(written[-1], right[-1]):
        return False
    pairs = zip(written, right, strict=True)
    return all(text == other or (len(other) >= _SHORTEST and _one_edit(text, other)) for text, other in pairs)


def _are_neighbours(name: str, other: str) -> bool:
    """Returns whether names differ only in numbers or in their last character, as the resources of two pools
    of devices do.
    """
    in_number = _DIGITS.sub("", name) == _DIGITS.sub("", other)
    return name != other and (in_number or (len(name) == len(other) and name[:-1] == other[:-1]))


_DIGITS = re.compile("[0-9]+")


def _one_edit(text: str, other: str) -> bool:
    """Returns whether one edit at most makes the texts equal: a letter added, removed or replaced, or two
    neighbouring letters swapped.
    """
    shorter = min(len(text), len(other))
    start = next((index for index in range(shorter) if text[index] != other[index]), shorter)
    rest, other_rest = text[start:], other[start:]
    while rest and other_rest and rest[-1] == other_rest[-1]:
        rest, other_rest = rest[:-1], other_rest[:-1]
    return max(len(rest), len(other_rest)) < 2 or (len(rest) == 2 and rest == other_rest[::-1])


def _asked(spec: Any) -> Iterator[list[str]]:
    """Yields the names in each `requests` and `limits` of a pod spec and its containers, without zero
    amounts.
    """
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
    """Returns the warning about a key, "" for none. `form`: "annotation" or "label".

    Cached, because most objects have the same few keys.
    """
    forms = _FORMS.get(key)
    if forms is not None:
        if form in forms or not key.startswith(DOMAINS):
            return ""
        right = " and a ".join(sorted(forms))
        return f"{form} {key} is not read. What would work: the {right} of that name"
    right_key = likely_key(key)
    return f"{form} {key} is not read by anyone. What would work: {right_key}" if right_key else ""


def likely_key(key: str) -> str:
    """Returns the known key that is probably meant; "" if none is similar."""
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
    # Reversed, so that a name of several domains gets the first one.
    domain_of = {candidate: other for other in reversed(DOMAINS) for candidate in _BY_DOMAIN[other]}
    best = _nearest(name, tuple(domain_of), _NEAR)
    return f"{domain_of[best]}/{best}" if len(best) >= _TELLING else ""


_LONGEST = 317
"""Maximum length of a valid key: a domain of 253 characters, a slash, and a name of 63."""


def _nearest(name: str, names: tuple[str, ...], bound: float) -> str:
    """Returns the most similar of these names (the first of several), "" if its similarity is below the bound
    (0 to 1).
    """
    best = max(names, key=lambda candidate: _alike(name, candidate), default="")
    return best if best and _alike(name, best) >= bound else ""


def _alike(one_text: str, other_text: str) -> float:
    return SequenceMatcher(None, one_text, other_text, autojunk=False).ratio()
