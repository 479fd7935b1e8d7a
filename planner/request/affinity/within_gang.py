"""Affinity and anti-affinity between the gang's own PodSets.

    four workers of half a rack each, a launcher with affinity over racks to workers
    `bound first`, `gang first`: all in one rack, which has no room     `scattered`: launcher beside a worker

If no bound pod matches an affinity term and the gang's own pods do, the pods with the term and the matching
pods are kept in one domain, so that the term is satisfied in any binding order. That is sufficient, but not
necessary: `AffinityForm` has the other ways to satisfy the term. A pod whose term is matched only by pods
that wait for it in turn never starts; its term counts as matched by none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from planner.model.labels import ANY, NODE_NAME_FIELD
from planner.model.pod import PodTerm, Spaces, term_matches
from planner.model.podgroup import PodSet
from planner.model.resolved import Attraction, NodeExclusion
from planner.model.topology import HOSTNAME

AFFINITY_CAUSE = "pod affinity"
"""The cause of node exclusions by affinity to other pods, for messages."""


InnerTerms = set[tuple[str, PodTerm]]
"""Affinity terms that the gang's own pods satisfy, each with the PodSet that has it."""


NearValues = Mapping[str, Mapping[PodTerm, frozenset[str]]]
"""By PodSet that has affinity to bound pods, and by term, the label values of the nodes of these pods."""


AffinityForm = Literal["bound first", "gang first", "scattered"]
"""How affinity to pods of other PodSets of the gang is satisfied, if PodSets without affinity match.

- `bound first`: beside bound pods if some match, else in one domain with all matching pods of the gang
- `gang first`: in one domain with all matching pods of the gang
- `scattered`: each pod beside a bound pod or a pod of the gang (`ResolvedShape.attractions`)
"""


def anti_affinity_between(
    sets: Sequence[PodSet], space: str, spaces: Spaces
) -> dict[str, set[tuple[str, str]]]:
    """Returns, by PodSet, pairs (label key, PodSet) of pods that must not be in one domain."""
    between: dict[str, set[tuple[str, str]]] = {pod_set.name: set() for pod_set in sets}
    for pod_set in sets:
        for term in pod_set.shape.terms:
            if term.attracts:
                continue
            for peer in sets:
                if term_matches(term, space, space, peer.shape.labels, spaces):
                    between[pod_set.name].add((term.key, peer.name))
                    between[peer.name].add((term.key, pod_set.name))
    return between


class AffinityInGang:
    """What follows from the affinity between the gang's own PodSets, by PodSet.

    `co_location`: pairs of a label key and all PodSets whose pods must be in one domain. `attractions`: as in
    `ResolvedShape`. `exclusions`: of nodes without the labels. `inner_terms`: the affinity terms that the
    gang's own pods satisfy, each with the PodSet that has it.
    """

    def __init__(self, sets: Iterable[PodSet]) -> None:
        names = [pod_set.name for pod_set in sets]
        self.co_location: dict[str, set[tuple[str, tuple[str, ...]]]] = {name: set() for name in names}
        self.attractions: dict[str, list[Attraction]] = {name: [] for name in names}
        self.exclusions: dict[str, list[NodeExclusion]] = {name: [] for name in names}
        self.inner_terms: InnerTerms = set()

    def keep_together(self, pod_set: PodSet, terms: Iterable[PodTerm], names: Iterable[str]) -> None:
        """Keeps all pods of these PodSets in one domain, for terms of one of them."""
        together = tuple(sorted({pod_set.name, *names}))
        for term in terms:
            self.inner_terms.add((pod_set.name, term))
            for name in together:
                self.co_location[name].add((term.key, together))
                self._exclude_unlabelled(name, term)

    def attract(self, pod_set: PodSet, attractions: Mapping[PodTerm, Attraction]) -> None:
        """Keeps the pods of a PodSet beside others, for its terms."""
        for term, attraction in attractions.items():
            self.inner_terms.add((pod_set.name, term))
            self.attractions[pod_set.name].append(attraction)
            self._exclude_unlabelled(pod_set.name, term)

    def _exclude_unlabelled(self, name: str, term: PodTerm) -> None:
        if term.key != HOSTNAME:
            self.exclusions[name].append(
                NodeExclusion(term.key, frozenset((ANY,)), AFFINITY_CAUSE, inside=True, passing=False)
            )


def affinity_between(
    sets: Sequence[PodSet], space: str, spaces: Spaces, near: NearValues, form: AffinityForm
) -> AffinityInGang:
    """Returns the affinity between the PodSets of a gang in `space`. `near`: bound pods that match."""
    affinity = AffinityInGang(sets)
    terms_of = {
        pod_set.name: tuple(term for term in pod_set.shape.terms if term.attracts) for pod_set in sets
    }
    attractive = {
        name: [peer.name for peer in sets if attracts(terms, space, space, peer.shape.labels, spaces)]
        for name, terms in terms_of.items()
    }
    starting = _starting(terms_of, near, attractive)
    for pod_set in sets:
        name, terms = pod_set.name, terms_of[pod_set.name]
        others = [peer for peer in attractive[name] if peer != name]
        if not attractive[name] or name not in starting:
            continue
        first = tuple(peer for peer in others if not terms_of[peer])
        if form == "scattered" and others:
            attractions = {
                term: Attraction(node_field(term.key), first, near.get(name, {}).get(term, frozenset()))
                for term in terms
            }
            affinity.attract(pod_set, attractions)
        elif name not in near:
            affinity.keep_together(pod_set, terms, attractive[name])
        elif form == "gang first" and first:
            affinity.keep_together(pod_set, terms, first)
    return affinity


def _starting(
    terms_of: Mapping[str, Sequence[PodTerm]],
    near: NearValues,
    attractive: Mapping[str, Sequence[str]],
) -> set[str]:
    """Returns the PodSets whose pods can start: kube-scheduler binds a pod with affinity if a bound pod
    matches, or if none does and the pod matches its own terms; further pods follow pods that have started.
    """
    starting = {
        name for name, terms in terms_of.items() if not terms or name in near or name in attractive[name]
    }
    while True:
        following = {name for name in terms_of if not starting.isdisjoint(attractive[name])} - starting
        if not following:
            return starting
        starting |= following


def attracts(
    terms: Sequence[PodTerm], pod_space: str, space: str, labels: Mapping[str, str], spaces: Spaces
) -> bool:
    """Reports whether a pod in `space` with these labels matches all affinity terms of a pod in `pod_space`,
    as kube-scheduler requires of a pod that is to satisfy any of them; False without terms.
    """
    return bool(terms) and all(term_matches(term, pod_space, space, labels, spaces) for term in terms)


def node_field(key: str) -> str:
    return NODE_NAME_FIELD if key == HOSTNAME else key
