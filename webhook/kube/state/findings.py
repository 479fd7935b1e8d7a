"""Findings about the cluster for the person who installs Bayplan: schedulers, GPU nodes, topologies. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.cluster.snapshot import Snapshot
from planner.model.resources import PART_PREFIXES, WHOLE_GPUS
from planner.model.schedulers import KAI
from planner.model.topology import HOSTNAME
from planner.model.words import counted

Grade = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One finding: the subject, its grade, a message, and what to do about it ("" for nothing)."""

    subject: str
    grade: Grade
    message: str
    mend: str = ""


def findings_of(snapshot: Snapshot) -> list[CheckFinding]:
    """Returns findings about the installed schedulers, and about the GPU nodes' labels for the topologies'
    levels.
    """
    return [_schedulers(snapshot), *_labels(snapshot)]


def _schedulers(snapshot: Snapshot) -> CheckFinding:
    """Returns which schedulers are installed, how each was recognised, and its numbers of queues and Topology
    objects.
    """
    seen = snapshot.base.schedulers
    if not seen.shown:
        text = "only kube-scheduler is there, and nothing is written for another one"
        return CheckFinding(
            "schedulers", "ok", text, "name one in schedulers.present, if it is there all the same"
        )
    names = [f"{name} (by {sign}{_owned(snapshot, name)})" for name, sign in seen.shown.items()]
    if KAI in seen.shown and not seen.queues.get(KAI):
        mend = "create a Queue: KAI schedules nothing without"
        return CheckFinding("schedulers", "warn", f"{', '.join(names)}; KAI has no Queue", mend)
    return CheckFinding("schedulers", "ok", ", ".join(names))


def _owned(snapshot: Snapshot, name: str) -> str:
    seen = snapshot.base.schedulers
    counts = (("queue", seen.queues.get(name)), ("Topology object", seen.topologies.get(name)))
    words = [f"{len(own)} {word}{'' if len(own) == 1 else 's'}" for word, own in counts if own is not None]
    return f"; {', '.join(words)}" if words else ""


def _is_gpu(name: str) -> bool:
    return name in WHOLE_GPUS or name.startswith(PART_PREFIXES)


def _labels(snapshot: Snapshot) -> list[CheckFinding]:
    """Returns findings about GPU nodes: whether there are any, whether each is in a topology, and whether
    those of a topology have the labels of its levels.
    """
    gpus = [
        node
        for node in snapshot.nodes.values()
        if any(amount and _is_gpu(name) for name, amount in node.allocatable.items())
    ]
    if not gpus:
        mend = "install the device plug-in, or wait for it"
        return [
            CheckFinding(
                "GPU nodes", "warn", f"of {counted(len(snapshot.nodes), 'node')} none offers GPUs", mend
            )
        ]
    results = [
        CheckFinding(
            "GPU nodes",
            "ok",
            f"of {counted(len(snapshot.nodes), 'node')} {counted(len(gpus), 'offers', 'offer')} GPUs",
        )
    ]
    trees = snapshot.base.trees.values()
    outside = [node.name for node in gpus if not any(node.name in tree.places for tree in trees)]
    if outside:
        text = f"{len(outside)} of {len(gpus)} GPU nodes are in no topology, as {outside[0]} is not"
        results.append(CheckFinding("topologies", "warn", text, "label them with a topology's levels"))
    for topology in snapshot.topologies:
        tree = snapshot.base.trees[topology.name]
        levels = [level for level in topology.levels if level != HOSTNAME]
        members = [node for node in gpus if node.name in tree.places]
        bare = [node.name for node in members if not all(node.labels.get(level) for level in levels)]
        subject = f"topology {topology.name}" if topology.name else "levels of the nodes' labels"
        if not levels or not members:
            text = "no level above the host" if not levels else "no GPU node belongs to it"
            mend = "create a Topology, and label the nodes with where they stand"
            results.append(CheckFinding(subject, "warn", text, mend))
        elif bare:
            lack = f"{counted(len(bare), 'lacks', 'lack')} a level's label, as {bare[0]} does"
            text = f"of {counted(len(members), 'GPU node')} {lack}"
            results.append(CheckFinding(subject, "warn", text, f"label them with {', '.join(levels)}"))
        else:
            text = (
                f"{counted(len(members), 'GPU node')} in {counted(len(levels), 'level')} ({topology.source})"
            )
            results.append(CheckFinding(subject, "ok", text))
    return results
