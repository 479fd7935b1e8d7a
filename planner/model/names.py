"""The names of gangs, NAMESPACE/KIND/NAME, and of pods, NAMESPACE/NAME."""

from __future__ import annotations


def namespace_of(name: str) -> str:
    """The NAMESPACE of a gang's or a pod's name."""
    return name.partition("/")[0]


def kind_of(gang: str) -> str:
    """The KIND of a gang's name; "" where it has none."""
    return gang.split("/")[1] if gang.count("/") >= 2 else ""
