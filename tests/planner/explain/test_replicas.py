"""Messages to a gang that is a replica of an object, and about gangs that are.

Each replica is of two hosts, which are a rack.
"""

from planner.planning.plan import plan
from tests.builders import gang, racks
from tests.planner.explain.test_messages import holding


def replicas(count, name="default/LeaderWorkerSet/serve"):
    """As many gangs of two hosts, each a replica of the object."""
    return [gang(2, required="rack", name=f"{name}/{index}") for index in range(count)]


def test_reservations_of_the_other_replicas_are_one_cause():
    """The object itself asks for them: they are not in its way, and do not end for it."""
    *placed, waiting = replicas(4)
    answer = plan(holding(racks(3, 2), *placed), waiting)
    assert answer.message.endswith(
        "All 6 nodes are reserved by 3 replicas of the same LeaderWorkerSet. Would work now: 3 replicas."
    )
    assert len(answer.obstacles) == 3


def test_the_jobs_of_a_jobset_are_its_gangs():
    """A JobSet has no replicas of its own."""
    *placed, waiting = replicas(3, "default/JobSet/train")
    answer = plan(holding(racks(2, 2), *placed), waiting)
    assert answer.message.endswith(
        "All 4 nodes are reserved by 2 Jobs of the same JobSet. Would work now: 2 Jobs."
    )


def test_reservations_of_several_replicas_of_another_object_are_one_cause():
    """The end of a replica of another object can be waited for."""
    answer = plan(holding(racks(3, 2), *replicas(3)), gang(2, required="rack"))
    assert answer.message.endswith(
        "All 6 nodes are reserved by 3 replicas of default/LeaderWorkerSet/serve. "
        "As asked, it fits once default/LeaderWorkerSet/serve/0 ends. No similar request fits now."
    )


def test_a_replica_waits_for_gangs_of_other_objects_only():
    """The other object is larger than each of the replicas, and its end makes room for one of them."""
    *placed, waiting = replicas(3)
    other = gang(3, name="default/Job/other", reserve="nodes")
    answer = plan(holding(racks(4, 2), other, *placed), waiting)
    assert (
        "As asked, 1 replica more fits once default/Job/other ends. Would work now: 2 replicas"
        in answer.message
    )
