"""Expressions of manifests/32-escapes.yaml and docs/recipes/skip that follow from the table of kinds, and the
files with them.

An annotation takes pods out of the plan from each place whence the code, or a controller, takes it over: from
the object itself, and from each metadata of its row in webhook/workloads/kinds.py.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.manifests.conditions import gpus
from webhook.admission.own_keys import OF_A_GANG, OWN
from webhook.workloads import KINDS
from webhook.workloads.keys.annotation_keys import POD_SET

ROOT = Path(__file__).parents[2]
FILE = ROOT / "manifests" / "32-escapes.yaml"
RECIPE = ROOT / "docs" / "recipes" / "skip" / "policy.yaml"
OBJECT = "metadata"
PLACES = (OBJECT, *dict.fromkeys(path for row in KINDS.values() for path in row.pods.metadata))
"""Where annotations of any kind stand."""

SPECS = tuple(dict.fromkeys(path for row in KINDS.values() for path in row.pods.specs))
"""Where the pod specs of any kind stand."""

PAUSE = r"^(.*/)?pause(-[a-z0-9]+)?(:[^/]*)?(@.*)?$"
"""The images of placeholders, as webhook/workloads/left_alone.py knows them."""


def notes(holder: str) -> str:
    """A CEL expression: lists of the annotations at all places of an object, each as a map."""
    return _lists(holder, [f"{path}.annotations" for path in PLACES])


def pods(holder: str) -> str:
    """A CEL expression: lists of the pod specs of an object."""
    return _lists(holder, SPECS)


def _lists(holder: str, paths: Sequence[str]) -> str:
    """Lists of the values at these paths of an object, `{}` for one that is missing."""
    depths = {path: path.count("[]") + path.count("{}") for path in paths}
    single, several, nested = ([path for path in paths if depths[path] == depth] for depth in range(3))
    first = ",\n  ".join(_values(holder, path) for path in single)
    lists = "".join(f",\n {_values(holder, path)}" for path in several)
    return "".join((f"[[{first}]{lists}]", *(f"\n+ {_values(holder, path)}" for path in nested)))


def _values(holder: str, path: str, item: str = "i") -> str:
    """The value at one path; a list of them where it leads through a list or a mapping, and a list of lists
    where it leads through two."""
    before, brackets, rest = re.fullmatch(r"([\w.]+)(\[\]|\{\}|)\.?(.*)", path).groups()  # type: ignore[union-attr]
    place = "".join(f".?{step}" for step in before.split("."))
    if not brackets:
        return f"{holder}{place}.orValue({{}})"
    if brackets == "[]":
        return f"{holder}{place}.orValue([]).map({item}, {_values(item, rest, chr(ord(item) + 1))})"
    plain = f"{holder}.{before}"
    return f"{holder}{place}.orValue({{}}).map(k, {_values(f'{plain}[k]', rest)})"


def with_gpus(pod_specs: str) -> str:
    """A CEL expression: of these lists of pod specs those that ask for GPUs."""
    return f"{pod_specs}.map(specs, specs.filter(p, {gpus('p')}))"


def placeholders(pod_specs: str) -> str:
    """A CEL expression: a pod of these lists has nothing but pause containers."""
    paused = f"p.containers.all(c, c.?image.orValue('').matches('{PAUSE}'))"
    return f"{pod_specs}.exists(specs, specs.exists(p, p.?containers.orValue([]) != [] && {paused}))"


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
    "pods": pods("object"),
    "formerPods": f"oldObject == null ? [] :\n{pods('oldObject')}",
    "gpuPods": with_gpus("variables.pods"),
    "formerGpuPods": with_gpus("variables.formerPods"),
    "poses": f"{placeholders('variables.gpuPods')}\n&& !{placeholders('variables.formerGpuPods')}",
    "claims": claims(),
}
"""By variable of the policy in `FILE`."""

OF_RECIPE = ("notes", "before")
"""The variables that the policy in `RECIPE` has too."""


def written(text: str, names: Iterable[str] = tuple(EXPRESSIONS)) -> str:
    """The text of a file with the expressions of these variables. Raises `ValueError` if one is not there
    once."""
    for name in names:
        expression = EXPRESSIONS[name]
        block = rf"(    - name: {name}\b.*\n      expression: \|\n)(?: {{8}}.*\n)+"
        body = textwrap.indent(expression, " " * 8) + "\n"
        text, count = re.subn(block, lambda match, body=body: match[1] + body, text)
        if count != 1:
            raise ValueError(f"the file has the variable {name} {count} times")
    return text
