"""The CEL engine: compiles an expression once into Python closures over plain JSON. Pure: no I/O, no clock.

`syntax` parses an expression into a tree, `compiler` compiles the tree into closures, `libraries` are the
functions, `values` CEL's types and values, `program` offers `compile` and `Program.evaluate`. Begin with
`program`. The *host* is the program that calls this package; *upstream* is Kubernetes' own CEL (cel-go).

Compile once, when the policy is loaded; the program is immutable and may be shared by threads:

    declared = Declarations(
        variables={"object": lookup("v1", "Pod"), "request": "map", "variables": None, "gang": None},
        functions={"nodeAffinity.require": Function(require, min_args=2, max_args=2)},
        mutations=True,                      # Object{}, JSONPatch{}, jsonpatch.escapeKey
    )
    where = Origin("policy.yaml", line=12, column=21, label="spec.validations[0].expression")
    program = compile("object.spec.replicas > 3", declared, origin=where)

The value of each of `variables` is a hint of its type: a `SchemaNode` (field paths are checked), the name of
a CEL type, or None for any type. Upstream evaluates `object` as untyped data, so give a schema only if a
policy matches one kind. `program.result_type` is "bool", "string", "list", "JSONPatch", "Object.spec", … or
"dyn" if it is not known before evaluation; refuse a validation whose type is neither "bool" nor "dyn".
`program.references` are the variables that the expression names, `program.reads` the constant paths that it
reads ("variables.foo", "plan.nodes").

Evaluate with bindings: any Mapping, which is asked for a name only when the expression needs it. A value may
be a lazy Mapping too (`variables`, `plan`): a field is read with `[name]`, for which a KeyError means "no
such key", and `has()` uses `in`. A CelError that the Mapping raises counts as an error of the expression:

    budget = CostBudget()                    # of one run: 10,000,000 units, 1,000,000 an expression
    value = program.evaluate({"object": pod}, budget)

Values are plain: dict, list, str, int, float, bool, None, bytes. Other values are `UInt` (an int),
`Timestamp`, `Duration`, `CelType`, `Optional` (`.present`, `.value`), `ObjectValue` (a dict with
`.type_name`, such as "Object.spec.template"; fields that were not set are absent), and `JSONPatch` (`.op`,
`.path`, `.source`, `.value`, `.has_value`). A list or map in a result may be a part of the bindings: copy it
before you change it. `to_json(value)` converts any result to plain JSON.

Every error is a `CelError` with `kind` "syntax", "undeclared" or "type" (from compile), "evaluation" or
"budget" (from evaluate), `message`, `line`, `column`, and `render()`:

    policy.yaml:12:33: no overload of > for (map, int) (spec.validations[0].expression)
      object.spec > 3
                  ^

`Function` registers a callable of the host over plain values, which may raise ValueError with a short
message. It is called as `nodeAffinity.require(a, b)` (a name may have dots); with `receiver=True` as
`a.name(b)`. Bind `authorizer` to an `Authorizer()` of `webhook.cel.libraries.authorizer`: without an
`Access`, it answers "not available".

`lookup(api_version, kind)` returns the structural schema of a built-in kind, or None. `unlike_elements(text)`
yields the lists and maps that only the API server refuses.
"""

from webhook.cel.compiler.declarations import Declarations
from webhook.cel.compiler.functions import Function
from webhook.cel.program import Program, compile, to_json
from webhook.cel.syntax.unlike_elements import unlike_elements
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
    "unlike_elements",
]
