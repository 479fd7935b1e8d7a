"""The parts of names: gangs are named NAMESPACE/KIND/NAME, pods NAMESPACE/NAME."""

from __future__ import annotations


def namespace_of(name: str) -> str:
    """Returns the namespace in the name of a gang or a pod."""
    return name.partition("/")[0]


def kind_of(gang: str) -> str:
    """Returns the kind in the name of a gang, "" if the name has none."""
    return gang.split("/")[1] if gang.count("/") >= 2 else ""
