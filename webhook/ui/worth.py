"""Estimates the bandwidth of a gang's placement, by the model of `bayplan plan`. Pure."""

from __future__ import annotations

from planner.bandwidth.words import place_worth, sentence
from planner.cluster.snapshot import Snapshot
from planner.planning.replay import answer_of
from webhook.kube.gang_standing import GangStanding


def worth_of(snapshot: Snapshot, gang: GangStanding) -> dict[str, object]:
    """Returns the estimated all-reduce time of a gang, and that of a topology-blind placement on the
    current cluster: as a sentence (`words`), and as numbers (`allReduce`).

    Returns only `words` if there is nothing to compare: the gang has no place, only one pod, or fewer than
    two whole GPUs.
    """
    held = gang.reservation
    if held is None:
        return {"words": "it has no place yet"}
    if gang.group is None:
        return {"words": "its workload is not known any more, only what it holds"}
    answer = answer_of(held)
    value = place_worth(snapshot, gang.group, answer)
    if value is None:
        return {"words": "no GPUs of several pods talk to each other"}
    return {"words": sentence(value), "allReduce": value.to_json()}
