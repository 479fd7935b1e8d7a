"""Says which pods of a gang select different domains of the level that the whole gang requires.

For example, a gang is required in one rack, its workers select rack=r1 and its driver rack=r2.
Each pod has nodes, and no rack has nodes for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from planner.model.labels import Term
from planner.model.pod_class import PodClass
from planner.model.resolved import ResolvedShape
from planner.model.topology import ROOT, short
from planner.model.words import listed
from planner.request.topology_request import TopologyRequest

_MOST_NAMED = 3
"""Maximum number of PodSets, and of label values, that are named for each choice."""


def different_domains(request: TopologyRequest) -> str:
    """Returns a sentence, without its full stop, that names pods which select different domains, and their
    selectors; "" if all pods of the gang may be in one domain of its required level.
    """
    for level in range(request.required, ROOT, -1):
        key = request.topology.levels[level]
        chosen = [
            (pod_class, values)
            for pod_class in request.pod_classes
            if (values := _chosen_values(pod_class.shape, key)) is not None
        ]
        for (pod_class, own), (other, others) in combinations(chosen, 2):
            if own.isdisjoint(others):
                domain = short(request.topology.levels[request.required])
                choices = f"{_choice(pod_class, key, own)}, {_choice(other, key, others)}"
                return f"No {domain} has nodes for both: {choices}"
    return ""


def _chosen_values(shape: ResolvedShape, key: str) -> frozenset[str] | None:
    """Returns the values of a label among which the node selector and the required node affinity choose; None
    if they do not name them.
    """
    choices = [frozenset((shape.node_selector[key],))] if key in shape.node_selector else []
    of_terms = [list(_listed_values(term, key)) for term in shape.affinity]
    if of_terms and all(of_terms):  # terms are ORed: one that leaves the label out allows every value
        choices.append(frozenset().union(*(frozenset.intersection(*values) for values in of_terms)))
    return frozenset.intersection(*choices) if choices else None


def _listed_values(term: Term, key: str) -> Iterator[frozenset[str]]:
    for requirement in term:
        if requirement.key == key and requirement.operator == "In":
            yield frozenset(requirement.values)


def _choice(pod_class: PodClass, key: str, values: frozenset[str]) -> str:
    names = [name for name, _ in pod_class.parts]
    verb = "selects" if len(names) == 1 else "select"
    return f"{listed(names, _MOST_NAMED)} {verb} {key}={' or '.join(sorted(values)[:_MOST_NAMED])}"
