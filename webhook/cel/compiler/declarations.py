"""The environment of an expression: variables, libraries, and the host's own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from webhook.cel.compiler.functions import Function
from webhook.cel.values import types
from webhook.cel.values.schema import SchemaNode
from webhook.cel.values.types import Type

_TYPE_NAMES: Final[Mapping[str, str]] = {
    **{name: name for name in ("bool", "int", "uint", "double", "string", "bytes", "null_type", "list")},
    **{name: name for name in ("map", "type", "optional_type", "net.IP", "net.CIDR", "kubernetes.URL")},
    **{name: name for name in ("kubernetes.Quantity", "kubernetes.Semver", "kubernetes.NamedFormat")},
    **{name: name for name in ("google.protobuf.Timestamp", "google.protobuf.Duration")},
}


@dataclass(frozen=True, slots=True)
class Declarations:
    """The environment of an expression.

    `variables` maps each name to a `SchemaNode` (its field paths are then checked), to the name of a CEL type
    ("string", "map", "list" …), or to None for any value. A name may have dots. `mutations` adds `Object{}`,
    `JSONPatch{}` and `jsonpatch.escapeKey`; the fields of `Object{}` are checked against `target`, or against
    the schema of the variable "object". `libraries` adds functions that Kubernetes' base environment does not
    have: "math", "base64", "bind", "strings" (the later string functions). `container`: a dotted prefix that
    names may omit. Without `strict`, unknown names and functions are errors of evaluation, as in an
    expression that was parsed but not checked. `poll`: called before each call of a library function is
    compiled, since a constant pattern may take 0.1 s; an error that it raises ends the compilation.
    """

    variables: Mapping[str, SchemaNode | str | None] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    mutations: bool = False
    target: SchemaNode | None = None
    libraries: frozenset[str] = frozenset()
    container: str = ""
    strict: bool = True
    poll: Callable[[], None] | None = None

    def type_of(self, name: str) -> Type:
        """Returns the static type of a declared variable."""
        hint = self.variables[name]
        if isinstance(hint, SchemaNode):
            return types.of_schema(hint)
        return types.DYN if hint is None else Type(hint)

    @property
    def type_names(self) -> Mapping[str, str]:
        """The names of types that an expression may use as values, for example in `type(x) == int`."""
        return _TYPE_NAMES

    @property
    def object_schema(self) -> SchemaNode | None:
        """The schema against which `Object{}` is checked, None if unknown."""
        hint = self.target or self.variables.get("object")
        return hint if isinstance(hint, SchemaNode) else None
