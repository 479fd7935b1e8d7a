"""Compiles a syntax tree to closures, with every check that is possible without an object.

A closure takes one list, the frame: the bindings, the meter, then a slot for each macro variable.
"""

from __future__ import annotations

from typing import Any

from webhook.cel.compiler import aggregates, mutations, operators, select
from webhook.cel.compiler.code import FIRST_SLOT, Code, Scope, constant, fold
from webhook.cel.compiler.comprehensions import comprehension
from webhook.cel.compiler.declarations import Declarations
from webhook.cel.compiler.functions import Dispatcher, Table, caller, host_caller, possible
from webhook.cel.compiler.literals import bad_literal
from webhook.cel.syntax import ast
from webhook.cel.syntax.build import dotted
from webhook.cel.syntax.hints import nearest
from webhook.cel.values import types
from webhook.cel.values.errors import CelError
from webhook.cel.values.types import DYN, Type
from webhook.cel.values.values import CelType


class Compiler:
    """Compiles one expression. `slots`: the number of slots that its frame needs.

    `references`, `reads`, `wholes`: as in `Program`. There is a method for each class of node.
    """

    def __init__(self, declared: Declarations, table: Table) -> None:
        self.declared = declared
        self.table = table
        self.slots = 0
        self.references: set[str] = set()
        self.reads: set[str] = set()
        self.wholes: set[str] = set()

    def compile(self, node: ast.ExprNode, scope: Scope) -> Code:
        """Returns the code of a node. Raises CelError if it is invalid."""
        self.slots = max(self.slots, scope.depth)
        code: Code = getattr(self, "_" + type(node).__name__.lower())(node, scope)
        return code

    # Names and fields

    def _literal(self, node: ast.Literal, scope: Scope) -> Code:
        return constant(node.value)

    def _ident(self, node: ast.Ident, scope: Scope) -> Code:
        if not node.absolute and node.name in scope.names:
            slot, kind = scope.names[node.name]
            return Code(operators.local(slot), kind)
        resolved = self._global([node.name], node)
        if resolved is None:
            return self._undeclared(node.name, node.pos)
        self.wholes.add(node.name)
        return resolved[0]

    def _undeclared(self, name: str, pos: int) -> Code:
        if self.declared.strict:
            raise CelError("undeclared", f"undeclared name {name!r}{self._hint(name)}", pos)

        def fail(f: list[Any]) -> Any:
            raise CelError("evaluation", f"no such name: {name}", pos)

        return Code(fail)

    def _hint(self, name: str) -> str:
        if self.table.has(name, False) or self.table.has(name, True):
            return "; it is a function and needs arguments"
        names = sorted(self.declared.variables)
        return f"; declared are {', '.join(names)}" if 0 < len(names) <= 12 else ""

    def _global(self, parts: list[str], root: ast.Ident) -> tuple[Code, int] | None:
        """Returns the longest declared name that is a prefix of the path, as code, with the number of its
        parts; None if there is none.
        """
        containers = (
            self.declared.container.split(".") if self.declared.container and not root.absolute else []
        )
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            for size in range(len(containers), -1, -1):
                full = ".".join([*containers[:size], name])
                if full in self.declared.variables:
                    return self._variable(full, root.pos), count
                if full in self.declared.type_names:
                    return constant(CelType(self.declared.type_names[full])), count
        return None

    def _variable(self, name: str, pos: int) -> Code:
        self.references.add(name)
        return Code(operators.variable(name, pos), self.declared.type_of(name), path=name)

    def _select(self, node: ast.Select, scope: Scope) -> Code:
        steps: list[tuple[str, int]] = []
        base: ast.ExprNode = node
        while isinstance(base, ast.Select) and not base.optional and not base.test:
            steps.append((base.field, base.pos))
            base = base.operand
        steps.reverse()
        if not steps:
            return self._special_select(node, scope)
        code = self._chain_root(base, steps, scope)
        kind, path = code.type, code.path
        if not steps:
            return code
        for name, pos in steps:
            kind = self._field_type(kind, name, pos)
            path = f"{path}.{name}" if path is not None else None
        self._read(path)
        return Code(select.selector(code.run, steps), kind, path=path)

    def _chain_root(self, base: ast.ExprNode, steps: list[tuple[str, int]], scope: Scope) -> Code:
        """Returns the code from which a chain of selections starts. Steps that are part of a dotted variable
        name are removed from `steps`.
        """
        if isinstance(base, ast.Ident) and (base.absolute or base.name not in scope.names):
            resolved = self._global([base.name, *(name for name, _ in steps)], base)
            if resolved is None:
                return self._undeclared(base.name, base.pos)
            code, taken = resolved
            del steps[: taken - 1]
            return code
        return self.compile(base, scope)

    def _special_select(self, node: ast.Select, scope: Scope) -> Code:
        operand = self.compile(node.operand, scope)
        kind = self._field_type(operand.type, node.field, node.pos)
        if operand.path is not None:
            self._read(f"{operand.path}.{node.field}")
        if node.test:
            if node.optional:
                return Code(operators.has_optional(operand.run, node.field, node.pos), types.BOOL)
            return Code(operators.has(operand.run, node.field, node.pos), types.BOOL)
        if operand.type.name != "optional_type":  # a field of an optional is an optional, not nested
            kind = Type("optional_type", kind)
        return Code(operators.optional_select(operand.run, node.field, node.pos), kind)

    def _conflict(self, message: str, pos: int) -> None:
        """Raises CelError for types that do not match; without `strict`, the evaluation raises it later."""
        if self.declared.strict:
            raise CelError("type", message, pos)

    def _read(self, path: str | None) -> None:
        if path is not None:
            self.reads.add(path)

    def _field_type(self, kind: Type, name: str, pos: int) -> Type:
        if kind.name == "optional_type":
            return Type("optional_type", self._field_type(kind.element, name, pos) if kind.elem else None)
        if kind.name == "map":
            if kind.node is None:
                return kind.element
            child = kind.node.fields.get(name) or kind.node.fields.get(select.unescape(name))
            if child is None:
                self._conflict(f"no field {name!r}{nearest(name, kind.node.fields)}", pos)
            return types.of_schema(child)
        if kind.name != "dyn" and not kind.name.startswith("Object"):
            self._conflict(f"{kind.name} has no field {name!r}", pos)
        return DYN

    def _index(self, node: ast.Index, scope: Scope) -> Code:
        operand, key = self.compile(node.operand, scope), self.compile(node.index, scope)
        kind = operand.type
        path = None
        if operand.path is not None and isinstance(key.constant, str):
            path = f"{operand.path}.{key.constant}"
            self._read(path)
        result = DYN
        base = kind.element if kind.name == "optional_type" else kind
        if base.name in ("list", "map"):
            result = base.element
            if base.node is not None and isinstance(key.constant, str):
                result = self._field_type(base, key.constant, node.index.pos)
        elif base.name != "dyn":
            self._conflict(f"{base.name} has no elements", node.pos)
        if base.name == "list" and key.type.name not in ("dyn", "int", "uint", "double"):
            self._conflict(f"a list's index must be an int, not {key.type.name}", node.pos)
        if node.optional or kind.name == "optional_type":
            result = Type("optional_type", result)
        return Code(select.indexer(operand.run, key.run, node.pos, node.optional), result, path=path)

    # Calls

    def _call(self, node: ast.Call, scope: Scope) -> Code:
        name, receiver = node.name, node.target is not None
        if node.target is not None:
            # `a.b.name(x)` calls the function `a.b.name` if there is one, unless `a` is a macro's variable.
            prefix = dotted(node.target)
            root = prefix.split(".")[0] if prefix else ""
            if prefix and root not in scope.names and self._is_function(f"{prefix}.{name}"):
                name, receiver = f"{prefix}.{name}", False
        nodes = [node.target, *node.args] if receiver and node.target is not None else node.args
        if receiver and name in ("or", "orValue") and len(nodes) == 2:
            return self._or(node, name, nodes, scope)
        host = self.declared.functions.get(name)
        is_host = host is not None and host.receiver == receiver
        if not is_host and not self.table.has(name, receiver) and self.declared.strict:
            self._unknown(name, receiver, node.pos)
        codes = [self.compile(child, scope) for child in nodes]
        if host is not None and is_host:
            if not host.min_args <= len(codes) <= host.max_args:
                raise CelError("type", f"{name} takes {_span(host.min_args, host.max_args)}", node.pos)
            return Code(host_caller(name, host, [c.run for c in codes], node.pos), Type(host.result))
        return self._library_call(name, receiver, codes, node.pos)

    def _is_function(self, name: str) -> bool:
        host = self.declared.functions.get(name)
        return (host is not None and not host.receiver) or self.table.has(name, False)

    def _unknown(self, name: str, receiver: bool, pos: int) -> None:
        if self.table.has(name, not receiver):
            how = "as value.name(…)" if not receiver else "without a receiver"
            raise CelError("undeclared", f"function {name!r} is called {how}", pos)
        candidates = [*self.table.names(receiver), *self.declared.functions]
        raise CelError("undeclared", f"unknown function {name!r}{nearest(name, candidates)}", pos)

    def _library_call(self, name: str, receiver: bool, codes: list[Code], pos: int) -> Code:
        overloads = self.table.find(name, receiver, len(codes))
        if not overloads:
            counts = self.table.counts(name, receiver)
            if self.declared.strict:
                raise CelError("type", f"{name} takes {_span(counts[0], counts[-1])}", pos)
            return self._failing(f"no overload of {name}", pos)
        matching = possible(overloads, [code.type for code in codes])
        if not matching:
            type_names = ", ".join(code.type.name for code in codes)
            self._conflict(f"no overload of {name} for ({type_names})", pos)
        result = types.join([Type(entry.result) for entry in matching])
        if self.declared.poll is not None:
            self.declared.poll()
        if problem := bad_literal(name, [code.constant for code in codes]):
            self._conflict(problem, pos)
        dispatcher = Dispatcher(name, overloads)
        code = Code(caller(dispatcher, [c.run for c in codes], pos), result)
        # The result type of these functions depends on that of the argument, which no signature can state.
        if name in ("dyn", "sort", "reverse", "distinct", "slice") or (
            name == "value" and codes[0].type.elem
        ):
            code.type = DYN if name == "dyn" else codes[0].type.element if name == "value" else codes[0].type
        return code if name == "dyn" else fold(code, codes)

    def _failing(self, message: str, pos: int) -> Code:
        def fail(f: list[Any]) -> Any:
            raise CelError("evaluation", message, pos)

        return Code(fail)

    def _or(self, node: ast.Call, name: str, nodes: list[ast.ExprNode], scope: Scope) -> Code:
        left, right = self.compile(nodes[0], scope), self.compile(nodes[1], scope)
        if left.type.name not in ("dyn", "optional_type"):
            raise CelError(
                "type", f"no overload of {name} for ({left.type.name}, {right.type.name})", node.pos
            )
        kind = left.type if name == "or" else types.join([left.type.element, right.type])
        return Code(operators.optional_or(left.run, right.run, name, node.pos), kind)

    # Operators

    def _unary(self, node: ast.Unary, scope: Scope) -> Code:
        operand = self.compile(node.operand, scope)
        expected = ("bool",) if node.op == "!" else ("int", "double")
        if operand.type.name not in ("dyn", *expected):
            self._conflict(f"no overload of {node.op} for ({operand.type.name})", node.pos)
        make = operators.negate if node.op == "!" else operators.minus
        return fold(
            Code(make(operand.run, node.pos), types.BOOL if node.op == "!" else operand.type), [operand]
        )

    def _binary(self, node: ast.Binary, scope: Scope) -> Code:
        chain: list[ast.Binary] = [node]
        while isinstance(chain[-1].left, ast.Binary):
            chain.append(chain[-1].left)
        left = self.compile(chain[-1].left, scope)
        for link in reversed(chain):
            left = self._operator(link, left, self.compile(link.right, scope))
        return left

    def _operator(self, node: ast.Binary, left: Code, right: Code) -> Code:
        kind = operators.result_type(node.op, left.type, right.type)
        if kind is None:
            type_names = f"{left.type.name}, {right.type.name}"
            self._conflict(f"no overload of {node.op} for ({type_names})", node.pos)
        if node.op in ("==", "!="):
            run = operators.equality(node.op, left.run, right.run, left.constant, right.constant)
        elif node.op == "in":
            run = operators.membership(left.run, right.run, right.constant, node.pos)
        elif node.op in ("<", "<=", ">", ">="):
            run = operators.ordering(node.op, left.run, right.run, node.pos)
        else:
            run = operators.arithmetic(node.op, left.run, right.run, node.pos)
        return fold(Code(run, kind or DYN), [left, right])

    def _logic(self, node: ast.Logic, scope: Scope) -> Code:
        codes = [self.compile(term, scope) for term in node.terms]
        for term, code in zip(node.terms, codes, strict=True):
            if code.type.name not in ("dyn", "bool"):
                self._conflict(f"{node.op} needs bool, not {code.type.name}", term.pos)
        return Code(operators.logic(node.op == "&&", [code.run for code in codes], node.pos), types.BOOL)

    def _conditional(self, node: ast.Conditional, scope: Scope) -> Code:
        condition = self.compile(node.condition, scope)
        then, otherwise = self.compile(node.then, scope), self.compile(node.otherwise, scope)
        if condition.type.name not in ("dyn", "bool"):
            self._conflict(f"a condition must be bool, not {condition.type.name}", node.condition.pos)
        return Code(
            operators.conditional(condition.run, then.run, otherwise.run, node.pos),
            types.join([then.type, otherwise.type]),
        )

    # Values

    def _listliteral(self, node: ast.ListLiteral, scope: Scope) -> Code:
        codes = [self.compile(item, scope) for item, _ in node.items]
        options = [optional for _, optional in node.items]
        if any(options):
            places = [item.pos for item, _ in node.items]
            return Code(aggregates.optional_list([c.run for c in codes], options, places), types.LIST)
        kind = Type("list", types.join([code.type for code in codes]) if codes else None)
        return fold(Code(aggregates.plain_list([c.run for c in codes]), kind), codes)

    def _mapliteral(self, node: ast.MapLiteral, scope: Scope) -> Code:
        keys = [self.compile(key, scope) for key, _, _ in node.entries]
        values = [self.compile(value, scope) for _, value, _ in node.entries]
        for key, (place, _, _) in zip(keys, node.entries, strict=True):
            if key.type.name not in ("dyn", "string", "int", "uint", "bool"):
                self._conflict(f"a {key.type.name} is no map key", place.pos)
        parts = [
            (key.run, value.run, optional, place.pos)
            for key, value, (place, _, optional) in zip(keys, values, node.entries, strict=True)
        ]
        kind = Type("map", types.join([code.type for code in values]) if values else None)
        return Code(aggregates.make_map(parts), DYN if any(p[2] for p in parts) else kind)

    def _struct(self, node: ast.Struct, scope: Scope) -> Code:
        fields = [
            (name, pos, self.compile(value, scope), optional) for name, pos, value, optional in node.fields
        ]
        seen: set[str] = set()
        for name, pos, _, _ in fields:
            if name in seen:
                raise CelError("type", f"field {name!r} is set twice", pos)
            seen.add(name)
        return mutations.struct(node, fields, self.declared)

    # Macros

    def _comprehension(self, node: ast.Comprehension, scope: Scope) -> Code:
        target = self.compile(node.target, scope)
        if target.type.name not in ("dyn", "list", "map"):
            self._conflict(f"{node.kind} needs a list or a map, not {target.type.name}", node.pos)
        variables = [
            (name, types.variable(target.type, i, len(node.names))) for i, name in enumerate(node.names)
        ]
        inner = scope.bind(*variables)
        test = self.compile(node.test, inner) if node.test is not None else None
        assert node.result is not None
        result = self.compile(node.result, inner)
        boolean = [(node.test, test)] if test else []
        if node.kind in ("all", "exists", "exists_one", "existsOne", "filter"):
            boolean.append((node.result, result))
        for place, code in boolean:
            if code is not None and place is not None and code.type.name not in ("dyn", "bool"):
                self._conflict(f"{node.kind} needs a bool, not {code.type.name}", place.pos)
        slot = FIRST_SLOT + scope.depth
        weight = 1 + (node.test.weight if node.test else 0) + node.result.weight
        run = comprehension(node, target.run, slot, test.run if test else None, result.run, weight)
        return Code(run, types.macro(node.kind, target.type, result.type))

    def _bind(self, node: ast.Bind, scope: Scope) -> Code:
        if "bind" not in self.declared.libraries:
            raise CelError(
                "undeclared", "unknown function 'cel.bind'; use a variable of the policy", node.pos
            )
        value = self.compile(node.value, scope)
        inner = scope.bind((node.name, value.type))
        body = self.compile(node.body, inner)
        return Code(operators.bind(value.run, FIRST_SLOT + scope.depth, body.run), body.type)

    def _optionalmap(self, node: ast.OptionalMap, scope: Scope) -> Code:
        target = self.compile(node.target, scope)
        if target.type.name not in ("dyn", "optional_type"):
            self._conflict(f"{target.type.name} is not optional", node.pos)
        body = self.compile(node.body, scope.bind((node.name, target.type.element)))
        run = operators.optional_map(target.run, FIRST_SLOT + scope.depth, body.run, node.flat, node.pos)
        return Code(run, body.type if node.flat else Type("optional_type", body.type))


def _span(min_args: int, max_args: int) -> str:
    if min_args == max_args:
        return f"{min_args} argument{'s' if min_args != 1 else ''}"
    return f"{min_args} to {max_args} arguments"
