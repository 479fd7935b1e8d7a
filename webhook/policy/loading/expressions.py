"""Compiles the expressions of one policy: which names each may use, and what type it must return."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from planner.model.names import dotted
from webhook.cel import CelError, Declarations, Function, Origin, Program, unlike_elements
from webhook.cel import compile as compile_cel
from webhook.cel.values.schema import ANY, SchemaNode
from webhook.policy.loading.errors import Problem
from webhook.policy.loading.fields import Fields
from webhook.policy.loading.variable_fields import VARIABLE_FIELDS
from webhook.policy.model.policy import Expression, NamedExpression, Reads

WHOLE = re.compile(r"(?<!\.)\bvariables\b(?!\s*\.)")
"""Finds `variables` without a field, as in `variables[name]`: such an expression may read any variable."""


BASE_VARIABLES = ("object", "oldObject", "request", "namespaceObject", "authorizer")


@dataclass(slots=True)
class ExpressionCompiler:
    """Compiles the expressions of one policy, in the order in which they are declared.

    `ours`: the policy is of the API group bayplan.dev, so its expressions may use Bayplan's variables and
    functions. `variables`: the names declared so far. `uses_of`: the root variables that each of them reads,
    including through other variables. `schema`: that of `object`, None if its kind is not known. An
    expression that does not fit the schema is a problem of a bayplan.dev policy. For an upstream policy, it
    is one of `warnings`, as in upstream's type checker: the API server compiles `object` as any type, and the
    expression fails when it is evaluated. A list or map of unlike types is a warning too, since Bayplan
    evaluates it, and the API server refuses the policy.
    """

    policy: str
    ours: bool
    has_params: bool
    functions: Mapping[str, Function]
    schema: SchemaNode | None = None
    authorizer: bool = True
    warnings: list[Problem] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    uses_of: dict[str, frozenset[str]] = field(default_factory=dict)

    def take(
        self,
        fields: Fields,
        name: str,
        *,
        gives: str = "",
        mutations: bool = False,
        variables: bool = True,
        required: bool = True,
    ) -> Expression | None:
        """Returns the expression in a field; None if it is missing or does not compile.

        Problems are recorded in `fields`. `gives`: the required type of the value. `mutations`: `Object{}`
        and `JSONPatch{}` are known. `variables`: the expression may read `variables`.
        """
        text = fields.text(name, required=required)
        if not text:
            return None
        compiled = partial(self._compiled, fields, name, text)
        program = compiled(self._declared(mutations, variables, self.schema))
        if isinstance(program, Problem) and self.schema is not None and not self.ours:
            unfit, program = program, compiled(self._declared(mutations, variables, None))
            if isinstance(program, Program):
                self.warnings.append(unfit)
        if isinstance(program, Problem):
            fields.problems.append(program)
            return None
        if not self.ours:
            self.warnings += self._unlike(fields, name, text)
        result_type = program.result_type
        if gives and result_type not in ("", "dyn") and not result_type.startswith(gives):
            fields.wrong(f"must give {gives}, gives {result_type}", name)
        label = dotted((*fields.path, name))
        return Expression(self.policy, label, program, self.ours, Reads.of(program))

    def _compiled(self, fields: Fields, name: str, text: str, declared: Declarations) -> Program | Problem:
        """Returns the compiled program, or the problem if the text does not compile with these
        declarations.
        """
        try:
            return compile_cel(text, declared, origin=_origin(fields, name))
        except CelError as error:
            return _problem(fields, name, error)

    def _unlike(self, fields: Fields, name: str, text: str) -> Iterator[Problem]:
        """Yields the literals of an upstream policy's expression that the API server does not compile."""
        for error in unlike_elements(text, _origin(fields, name)):
            yield _problem(fields, name, error)

    def declare(self, name: str, expression: Expression) -> NamedExpression:
        """Declares `variables.name` for the following expressions."""
        self.uses_of[name] = self.uses([expression])
        self.variables.append(name)
        return NamedExpression(name, expression)

    def uses(self, expressions: Iterable[Expression]) -> frozenset[str]:
        """Returns the root variables that expressions read, including through `variables`."""
        roots: set[str] = set()
        for expression in expressions:
            program = expression.program
            roots |= program.references
            if "variables" in program.references:
                read_names = read_variables(program)
                for name in self.variables if read_names is None else read_names:
                    roots |= self.uses_of.get(name, frozenset())
        return frozenset(roots)

    def _declared(self, mutations: bool, variables: bool, schema: SchemaNode | None) -> Declarations:
        names = [name for name in BASE_VARIABLES if name != "authorizer" or self.authorizer]
        if self.has_params:
            names.append("params")
        hints: dict[str, SchemaNode | str | None] = dict.fromkeys(names)
        if self.ours:
            hints |= VARIABLE_FIELDS
        hints["object"] = hints["oldObject"] = schema
        if variables:
            hints["variables"] = SchemaNode("object", fields=dict.fromkeys(self.variables, ANY))
        functions = self.functions if self.ours else {}
        return Declarations(variables=hints, mutations=mutations, functions=functions)


def read_variables(program: Program) -> set[str] | None:
    """Returns the names that an expression reads as `variables.NAME`; None if it may read any of them."""
    if WHOLE.search(program.text):
        return None
    paths = (path.split(".") for path in program.reads)
    # No name was found although the expression reads `variables`: it may read any.
    return {steps[1] for steps in paths if steps[0] == "variables" and len(steps) > 1} or None


def _origin(fields: Fields, name: str) -> Origin:
    path = (*fields.path, name)
    mark = fields.document.mark(path)
    return Origin(fields.document.file, mark.line, mark.column, dotted(path), mark.indent)


def _problem(fields: Fields, name: str, error: CelError) -> Problem:
    """Returns a compile error with the line of the expression and a caret below the position."""
    path = (*fields.path, name)
    source = "\n".join(error.render().split("\n")[1:])
    document = fields.document
    return Problem(
        document.file, error.line, error.column, document.name, dotted(path), error.message, source
    )
