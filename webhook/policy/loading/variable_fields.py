"""The fields of `gang`, `plan` and `cluster`, so that a misspelt one is a problem when a policy is loaded.

`webhook.variables` computes their values; a test checks that both have the same fields. Only names are
checked, not the types of values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.cel.values.schema import ANY, SchemaNode


def _names(names: str) -> dict[str, None]:
    return dict.fromkeys(names.split())


_CONSTRAINT: Final = _names("topology required preferred sliceLevel sliceSize")

_OUTLINES: Final[Mapping[str, Any]] = {
    "gang": {
        **_names("name namespace kind podSet queue size gpus replicas suspended perPod"),
        "podSets": [{**_names("name count gpus resources mig"), "constraint": _CONSTRAINT}],
        **_names("labels annotations schedulers role topologies reserve onUnavailable"),
        "fellows": [_names("group scheduler who")],
        "beside": [_names("gang role topology domain")],
        "constraint": _CONSTRAINT,
        "keys": [_names("field kind value")],
    },
    "plan": {
        **_names("decision topology level domain reserves nodes ranks requirements"),
        "gangs": [_names("name decision level domain nodes")],
        **_names("reservation reason message"),
    },
    "cluster": _names(
        "known topologies aliases hostless levels nodePools mig resources gpuShare nodeKinds largestFree "
        "domains gpuNodes nodes gpus numa claims cliques limits runtimeClasses migNodes watched schedulers "
        "queues followed queueTopologies"
    ),
}
"""By variable: a map of fields, a list with such a map, or None for a value whose content is not checked."""


def _node(outline: Any) -> SchemaNode:
    if isinstance(outline, list):
        return SchemaNode("list", items=_node(outline[0]))
    if outline is None:
        return ANY
    return SchemaNode("object", fields={name: _node(below) for name, below in outline.items()})


VARIABLE_FIELDS: Final = {name: _node(outline) for name, outline in _OUTLINES.items()}
"""The schema of each variable, by name."""
