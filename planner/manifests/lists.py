"""The items of List objects, as kubectl and the API server write them."""

from __future__ import annotations

from collections.abc import Mapping


def item_of(list_object: Mapping[str, object], item: object) -> object:
    """Returns an item of a list. In a typed list (NodeList), the API server writes apiVersion and kind only
    once: an item that states neither gets those of the list, as in kubectl (`decodeToList` of
    k8s.io/apimachinery).
    """
    kind = str(list_object.get("kind"))
    if kind == "List" or not isinstance(item, Mapping) or item.get("apiVersion") or item.get("kind"):
        return item
    head = {"apiVersion": list_object.get("apiVersion"), "kind": kind.removesuffix("List")}
    return {**head, **item, **head}  # first in the order of fields, and in place of null
