"""Removes values that may be secret from objects. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEFT_OUT = ""
"""Replaces a secret value in a field that is kept, because policies may test whether the field exists."""
_ANNOTATIONS = ("kubectl.kubernetes.io/last-applied-configuration",)
"""Annotations that contain a copy of the whole object."""
_ENVIRONMENTS = ("env", "envVars", "env_vars")
"""Fields with environment variables: a list of variables, or a map of names to values."""
_TEXTS = ("runtimeEnvYAML", "userData", "cloudInit")
"""Fields whose text contains an environment (Ray), or the configuration of a machine."""
_VALUES = ("data", "stringData", "binaryData")
"""The data fields of a Secret or ConfigMap."""


def without_secrets(value: Any) -> Any:
    """Returns the object without values of environment variables, data of Secrets and ConfigMaps, managed
    fields, and annotations that contain the object.
    """
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    holds = value.get("kind") in ("Secret", "ConfigMap")
    return {
        key: _field_value(key, inner)
        for key, inner in value.items()
        if key not in _ANNOTATIONS and key != "managedFields" and not (holds and key in _VALUES)
    }


def _field_value(key: str, value: Any) -> Any:
    if key in _ENVIRONMENTS and isinstance(value, list):
        return [_variable(item) for item in value]
    if key in _ENVIRONMENTS and isinstance(value, Mapping):
        return {name: _variable(item) for name, item in value.items()}
    return LEFT_OUT if key in _TEXTS else without_secrets(value)


def _variable(item: Any) -> Any:
    """Returns an environment variable with its name and `valueFrom`, but without its value."""
    if not isinstance(item, Mapping):
        return LEFT_OUT
    return {key: LEFT_OUT if key == "value" else inner for key, inner in item.items()}
