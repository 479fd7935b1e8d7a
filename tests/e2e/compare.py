"""Compares objects without the fields that an API server adds to each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.model.errors import InputError, Where
from planner.model.quantity import parse

Json = dict[str, Any]
OF_OTHERS = ("kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision")
"""Annotations that kubectl and a controller write."""
OF_THE_SCHEDULER = "topology.kubernetes.io/zone"
"""A label that a pod gets with its node, when it is bound."""
TOKEN = re.compile("kube-api-access-[a-z0-9]{5}")
"""The volume of a pod's token, whose name is drawn anew at every admission."""
OF_WHAT_CAME = ".metadata.annotations.bayplan.dev/applied"
"""Digests of the templates as they came: in a cluster with the defaults that the API server has put in."""
OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


def differences(wanted: Any, stored: Any, path: str = "") -> list[str]:
    """Paths at which the stored object differs from the wanted one. The API server may add fields, but no
    list items.
    """
    if isinstance(wanted, Mapping) and isinstance(stored, Mapping):
        missing = [
            f"{path}.{key} is missing" for key in wanted if key not in stored and wanted[key] is not None
        ]
        inner = [
            line
            for key in wanted
            if key in stored
            for line in differences(wanted[key], stored[key], f"{path}.{key}")
        ]
        return missing + inner
    if isinstance(wanted, list) and isinstance(stored, list) and len(wanted) == len(stored):
        pairs = enumerate(zip(wanted, stored, strict=True))
        return [line for index, pair in pairs for line in differences(*pair, f"{path}[{index}]")]
    equal = wanted == stored or path == OF_WHAT_CAME or _same_quantity(wanted, stored)
    return [] if equal else [f"{path}: {wanted!r}, {stored!r}"]


def content(obj: Json) -> Json:
    """An object without the fields that the cluster sets: identity, times, status, and the node of a bound
    pod. A Job's selector contains its UID, so the UID is replaced everywhere.
    """
    uid = obj["metadata"].get("uid", "")
    kept = {key: value for key, value in obj.items() if key != "status"}
    kept["metadata"] = {key: value for key, value in obj["metadata"].items() if key not in OF_THE_SERVER}
    if obj["kind"] == "Pod":
        kept["spec"] = {key: value for key, value in obj["spec"].items() if key != "nodeName"}
    for place, foreign in (("annotations", OF_OTHERS), ("labels", (OF_THE_SCHEDULER,))):
        entries = kept["metadata"].get(place, {})
        kept["metadata"][place] = {key: entries[key] for key in entries if key not in foreign}
    return _replaced(kept, uid)  # type: ignore[no-any-return]


def _replaced(value: Any, uid: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(item, uid) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, uid) for item in value]
    if isinstance(value, str) and TOKEN.fullmatch(value):
        return "TOKEN"
    return "UID" if value == uid else value


def _same_quantity(quantity: Any, other: Any) -> bool:
    try:
        return parse(quantity, Where("")) == parse(other, Where(""))
    except InputError:
        return False
