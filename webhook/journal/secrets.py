"""Objects without what may be secret in them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEFT_OUT = ""
"""What stands for a value that is left out: the field stays, for policies look whether it is there."""
_ANNOTATIONS = ("kubectl.kubernetes.io/last-applied-configuration",)
"""Annotations that hold the whole object once more."""
_ENVIRONMENTS = ("env", "envVars", "env_vars")
"""Fields that hold an environment: a list of variables, or a map of names to values."""
_TEXTS = ("runtimeEnvYAML", "userData", "cloudInit")
"""Fields that hold an environment as one text (Ray's), or a machine's."""
_VALUES = ("data", "stringData", "binaryData")
"""What a Secret or ConfigMap holds."""


def without_secrets(value: Any) -> Any:
    """The object without the values of environment variables, and without the content of Secrets and
    ConfigMaps; managed fields are left out too."""
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    holds = value.get("kind") in ("Secret", "ConfigMap")
    return {
        key: _inside(key, inner)
        for key, inner in value.items()
        if key not in _ANNOTATIONS and key != "managedFields" and not (holds and key in _VALUES)
    }


def _inside(key: str, value: Any) -> Any:
    if key in _ENVIRONMENTS and isinstance(value, list):
        return [_variable(item) for item in value]
    if key in _ENVIRONMENTS and isinstance(value, Mapping):
        return {name: _variable(item) for name, item in value.items()}
    return LEFT_OUT if key in _TEXTS else without_secrets(value)


def _variable(item: Any) -> Any:
    """A variable with its name, and with where its value comes from, but not the value."""
    if not isinstance(item, Mapping):
        return LEFT_OUT
    return {key: LEFT_OUT if key == "value" else inner for key, inner in item.items()}
