"""The parts of names: gangs are named NAMESPACE/KIND/NAME, those that are replicas of an object
NAMESPACE/KIND/NAME/INDEX, pods NAMESPACE/NAME. `dotted` names a field of an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.model.words import counted, listed


def namespace_of(name: str) -> str:
    """Returns the namespace in the name of a gang or a pod."""
    return name.partition("/")[0]


def kind_of(gang: str) -> str:
    """Returns the kind in the name of a gang, "" if the name has none."""
    return gang.split("/")[1] if gang.count("/") >= 2 else ""


def object_of(replica: str) -> str:
    """Returns the NAMESPACE/KIND/NAME of the object of which a gang is a replica, "" if it is none."""
    name, _, index = replica.rpartition("/")
    return name if name.count("/") == 2 and index.isdecimal() else ""


def replicas_of(name: str, count: int) -> str:
    """Returns a number of gangs of an object as text: "2 replicas", or "2 Jobs" of a JobSet.

    `name`: that of the object, or of one of its gangs.
    """
    return counted(count, "Job" if kind_of(name) == "JobSet" else "replica")


def first_replicas(name: str, count: int, total: int) -> str:
    """Returns the first `count` of the `total` gangs of an object as text: "the first 1000 of 2000 replicas";
    all of them without "first": "2 replicas".
    """
    return f"the first {count} of {replicas_of(name, total)}" if count < total else replicas_of(name, total)


def gangs_listed(gangs: Iterable[str]) -> str:
    """Returns the names of gangs as text, successive replicas of one object as a range:
    "research/Job/a, research/JobSet/b/0–3".
    """
    ranges: list[tuple[str, str]] = []
    for gang in gangs:
        first, last = ranges[-1] if ranges else ("", "")
        if object_of(last) and gang == _successor(last):
            ranges[-1] = first, gang
        else:
            ranges.append((gang, gang))
    return listed(
        [first if first == last else f"{first}–{last.rpartition('/')[2]}" for first, last in ranges]
    )


def part_listed(gangs: Sequence[str], total: int) -> str:
    """Returns the names of some of an object's gangs, and how many of its `total` gangs they are:
    "research/JobSet/b/0–3 (4 of 6 Jobs)".
    """
    part = f"{len(gangs)} of" if len(gangs) < total else "all"
    count = f" ({part} {replicas_of(gangs[0], total)})" if total > 1 else ""
    return f"{gangs_listed(gangs)}{count}"


def _successor(replica: str) -> str:
    name, _, index = replica.rpartition("/")
    return f"{name}/{int(index) + 1}"


def dotted(path: Sequence[str | int]) -> str:
    """Returns a path of map keys and list indexes in readable form: `spec.replicatedJobs[0].template`,
    `metadata.annotations[a.b/c]`.
    """
    text = ""
    for step in path:
        if isinstance(step, int) or any(mark in step for mark in "./"):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
