"""Expressions of manifests/32-escapes.yaml that follow from the table of kinds, and the file with them.

An annotation takes pods out of the plan from each place whence the code, or a controller, takes it over: from
the object itself, and from each metadata of its row in webhook/workloads/kinds.py.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from webhook.admission.own_keys import OF_A_GANG, OWN
from webhook.workloads import KINDS
from webhook.workloads.keys.annotation_keys import POD_SET

FILE = Path(__file__).parents[2] / "manifests" / "32-escapes.yaml"
OBJECT = "metadata"
PLACES = (OBJECT, *dict.fromkeys(path for row in KINDS.values() for path in row.pods.metadata))
"""Where annotations of any kind stand."""


def notes(holder: str) -> str:
    """A CEL expression: lists of the annotations at all places of an object, each as a map."""
    depths = {path: path.count("[]") + path.count("{}") for path in PLACES}
    single, several, nested = ([path for path in PLACES if depths[path] == depth] for depth in range(3))
    first = ",\n  ".join(_annotations(holder, path) for path in single)
    lists = "".join(f",\n {_annotations(holder, path)}" for path in several)
    return "".join((f"[[{first}]{lists}]", *(f"\n+ {_annotations(holder, path)}" for path in nested)))


def _annotations(holder: str, path: str, item: str = "i") -> str:
    """The annotations at one path; a list of them where it leads through a list or a mapping, and a list of
    lists where it leads through two."""
    before, brackets, rest = re.fullmatch(r"([\w.]+)(\[\]|\{\}|)\.?(.*)", path).groups()  # type: ignore[union-attr]
    place = "".join(f".?{step}" for step in before.split("."))
    if not brackets:
        return f"{holder}{place}.?annotations.orValue({{}})"
    if brackets == "[]":
        inner = _annotations(item, rest, chr(ord(item) + 1)) if rest else f"{item}.?annotations.orValue({{}})"
        return f"{holder}{place}.orValue([]).map({item}, {inner})"
    plain = f"{holder}.{before}"
    return f"{holder}{place}.orValue({{}}).map(k, {_annotations(f'{plain}[k]', rest)})"


def claims() -> str:
    """A CEL expression: the template of a Job says that its pods are planned, or are of a gang.

    The index of a PodSet alone says nothing: admission writes it into the templates of CronJobs too."""
    keys = ",\n    ".join(f"'{key}'" for key in sorted((OWN - {POD_SET}) | OF_A_GANG))
    metadata = "object.?spec.?template.?metadata"
    fields = ", ".join(f"{metadata}.?{field}.orValue({{}})" for field in ("annotations", "labels"))
    return f"[{fields}]\n.exists(m, [\n    {keys}\n  ].exists(k, k in m))"


EXPRESSIONS = {
    "notes": notes("object"),
    "before": f"oldObject == null ? [] :\n{notes('oldObject')}",
    "claims": claims(),
}
"""By variable of the policy."""


def written(text: str) -> str:
    """The text of the file with these expressions. Raises `ValueError` if a variable is not there once."""
    for name, expression in EXPRESSIONS.items():
        block = rf"(    - name: {name}\b.*\n      expression: \|\n)(?: {{8}}.*\n)+"
        body = textwrap.indent(expression, " " * 8) + "\n"
        text, count = re.subn(block, lambda match, body=body: match[1] + body, text)
        if count != 1:
            raise ValueError(f"{FILE.name} has the variable {name} {count} times")
    return text
