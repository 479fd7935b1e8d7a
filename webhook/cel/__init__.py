"""The CEL engine: expressions compiled once into closures over plain JSON. Pure: no I/O, clock or threads.

`syntax` parses, `compiler` makes closures, `libraries` are the functions, `values` what CEL knows beyond
JSON, `program` the way from text to value. Begin with `program`.

Compile once, when the policy is loaded; the program is immutable and may be shared by threads:

    declared = Declarations(
        variables={"object": lookup("v1", "Pod"), "request": "map", "variables": None, "gang": None},
        functions={"nodeAffinity.require": Function(require, min_args=2, max_args=2)},
        mutations=True,                      # Object{}, JSONPatch{}, jsonpatch.escapeKey
    )
    where = Origin("policy.yaml", line=12, column=21, label="spec.validations[0].expression")
    program = compile("object.spec.replicas > 3", declared, origin=where)

A variable's hint is a schema `Node` (its field paths are checked), the name of a CEL type, or None for any.
Upstream evaluates `object` as untyped data, so give a schema only where a policy matches one kind.
`program.result_type` is "bool", "string", "list", "JSONPatch", "Object.spec", … or "dyn" where it cannot be
known; refuse a validation whose type is neither "bool" nor "dyn". `program.references` are the variables it
names, `program.reads` the constant paths it reads ("variables.foo", "plan.nodes").

Evaluate with bindings; any Mapping will do, and it is asked for a name only when the expression needs it.
A lazy Mapping may itself be a value (`variables`, `plan`): fields are taken with `[name]`, a KeyError is "no
such key", `has()` asks `in`. A CelError raised in there passes through:

    budget = CostBudget()                    # one per request: 10,000,000 units, 1,000,000 an expression
    value = program.evaluate({"object": pod}, budget)

Values are plain: dict, list, str, int, float, bool, None, bytes. Besides: `UInt` (an int), `Timestamp`,
`Duration`, `CelType`, `Optional` (`.present`, `.value`), `ObjectValue` (a dict with `.type_name`, such as
"Object.spec.template"; fields that were not set are absent), `JSONPatch` (`.op`, `.path`, `.source`,
`.value`, `.has_value`). A list or map in a result may be a part of the bindings: copy before changing it.
`to_json(value)` makes any result plain JSON.

Whatever is wrong is a `CelError` with `kind` "syntax", "undeclared" or "type" (from compile), "evaluation" or
"budget" (from evaluate), `message`, `line`, `column`, and `render()`:

    policy.yaml:12:33: no overload of > for (map, int) (spec.validations[0].expression)
      object.spec > 3
                  ^

`Function` registers a host's callable over plain values; it raises ValueError with a short message. A name
with dots is called like `nodeAffinity.require(a, b)`; with `receiver=True` like `a.name(b)`. Bind
`authorizer` to an `Authorizer()` of `webhook.cel.libraries.authorizer`: it answers "not available" until it
is given an `Access`.

`lookup(api_version, kind)` gives the structural schema of a built-in kind, or None.
"""

from webhook.cel.compiler.declarations import Declarations
from webhook.cel.compiler.functions import Function
from webhook.cel.program import Program, compile, to_json
from webhook.cel.values.budget import CostBudget
from webhook.cel.values.errors import CelError, Origin
from webhook.cel.values.schema import lookup
from webhook.cel.values.values import CelType, Duration, JSONPatch, ObjectValue, Optional, Timestamp, UInt

__all__ = [
    "CelError",
    "CelType",
    "CostBudget",
    "Declarations",
    "Duration",
    "Function",
    "JSONPatch",
    "ObjectValue",
    "Optional",
    "Origin",
    "Program",
    "Timestamp",
    "UInt",
    "compile",
    "lookup",
    "to_json",
]
