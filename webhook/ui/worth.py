"""What the place of a gang is worth, by the model of `bayplan plan`. Pure."""

from __future__ import annotations

from planner.bandwidth.words import place_worth, sentence
from planner.cluster.snapshot import Snapshot
from planner.planning.replay import answer_of
from webhook.kube.standing import GangStanding


def worth_of(snapshot: Snapshot, gang: GangStanding) -> dict[str, object]:
    """The time of an all-reduce there, beside a topology-blind placement on the cluster as it is now.

    `words` alone where there is nothing to compare: no place, one pod, fewer than two whole GPUs.
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
