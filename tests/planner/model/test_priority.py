"""A pod has the priority that the API server's Priority admission plugin computes from its PriorityClass."""

from __future__ import annotations

import pytest

from planner.manifests.cluster import read
from planner.model.errors import InputError
from planner.model.priority import PriorityClass, PriorityClasses, priority_of
from planner.planning.plan import plan
from tests.builders import gang, of_class, pod_set, racks, shape, with_classes


def classes(*priority_classes: PriorityClass) -> PriorityClasses:
    """A cluster's PriorityClasses."""
    return PriorityClasses({priority_class.name: priority_class for priority_class in priority_classes})


def test_pods_without_a_class_have_priority_zero() -> None:
    """Where no class is the default."""
    assert classes(PriorityClass("high", 10)).value("") == 0


def test_pods_without_a_class_have_the_default_of_the_cluster() -> None:
    """Of several defaults the lowest counts, as in the plugin."""
    priorities = classes(PriorityClass("b", 7, True), PriorityClass("a", 3, True), PriorityClass("low", -5))
    assert priorities.value("") == 3


def test_the_classes_of_the_system_are_always_there() -> None:
    """The API server makes them itself; cluster files seldom list them."""
    assert classes().value("system-node-critical") == 2_000_001_000
    assert classes().value("system-cluster-critical") == 2_000_000_000


def test_a_class_that_is_not_there_has_no_priority() -> None:
    """The plugin refuses such a pod; in the queue it counts as 0."""
    assert classes(PriorityClass("high", 10)).value("higher") is None
    assert priority_of(classes(PriorityClass("high", 10)), of_class(gang(1), "higher")) == 0


def test_a_gang_has_the_highest_priority_among_its_pods() -> None:
    """A leader of a class of its own brings the whole gang forward, as all of it must start."""
    leader = of_class(gang(pod_set(1, name="leader")), "high").pod_sets[0]
    group = gang(leader, pod_set(2, shape(gpu=1), name="worker"))
    assert priority_of(classes(PriorityClass("high", 10)), group) == 10


def test_cluster_files_tell_the_classes() -> None:
    """As `kubectl get priorityclasses -o yaml` prints them."""
    item = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
        "globalDefault": True,
    }
    priorities = read([("classes.yaml", item)]).base.priorities
    assert priorities == classes(PriorityClass("high", 1000, True))
    with pytest.raises(InputError, match="PriorityClass high: value: expected a whole number"):
        read([("classes.yaml", {**item, "value": "much"})])


UNKNOWN = "PriorityClass 'forged' is not in this cluster, so the API server refuses the pods; use high (10)"


@pytest.mark.parametrize(
    ("name", "stating", "warnings"),
    [
        ("high", None, ()),
        ("high", 10, ()),
        ("", None, ()),
        ("", 0, ()),
        ("", 7, ("spec.priority 7 is ignored: no priorityClassName means 0",)),
        ("high", 7, ("spec.priority 7 is ignored: PriorityClass 'high' means 10",)),
        ("forged", None, (UNKNOWN,)),
        ("forged", 7, (UNKNOWN, "spec.priority 7 is ignored: PriorityClass 'forged' is not known here")),
    ],
)
def test_what_the_api_server_will_refuse_is_told(
    name: str, stating: int | None, warnings: tuple[str, ...]
) -> None:
    """A number that agrees with the class is no news; any other is ignored, and has the pods refused."""
    answer = plan(with_classes(racks(1, 1), high=10), of_class(gang(1), name, stating=stating))
    assert answer.decision == "admitted"
    assert len(answer.warnings) == len(warnings)
    assert all(note.startswith(text) for note, text in zip(answer.warnings, warnings, strict=True))


def test_files_without_any_class_call_none_unknown() -> None:
    """Every cluster has some, so these files only do not tell."""
    assert plan(racks(1, 1), of_class(gang(1), "high")).warnings == ()
