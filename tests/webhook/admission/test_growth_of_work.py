"""The work of a decision is proportional to the size of the object, counted in calls rather than in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import racks
from tests.effort import calls
from tests.webhook.policy.helpers import evaluations
from tests.webhook.workloads.objects import annotated
from webhook.admission.context import RequestContext
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.admission.evaluation import Evaluation
from webhook.policy.engine.mutation.mutate import run_mutating
from webhook.policy.functions.workloads import places
from webhook.policy.loading.files import load_paths
from webhook.policy.model.policy import Expression
from webhook.wire.request import from_object
from webhook.workloads.keys.annotation_keys import EXCLUSIVE_JOBSET
from webhook.workloads.read_templates import ReadTemplates

ROOT = Path(__file__).parents[3]
POLICIES = load_paths([str(ROOT / "policies")])
SNAPSHOT = racks(4, 6)
ENVIRONMENT = Environment().with_policy_parameters(POLICIES)


def job_set(pod_sets: int) -> dict[str, Any]:
    """A JobSet of this many PodSets of one GPU pod each, all with different templates."""
    jobs = [
        {
            "name": f"w{index}",
            "template": {
                "spec": {
                    "parallelism": 1,
                    "completions": 1,
                    "completionMode": "Indexed",
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [
                                {
                                    "name": "main",
                                    "image": f"trainer:{index}",
                                    "resources": {"limits": {"nvidia.com/gpu": 1}},
                                }
                            ],
                        }
                    },
                }
            },
        }
        for index in range(pod_sets)
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "many", "namespace": "research"},
        "spec": {"replicatedJobs": jobs},
    }


def decided(pod_sets: int) -> Decision:
    return decide(from_object(job_set(pod_sets)), POLICIES, SNAPSHOT, "mutate", ENVIRONMENT)


def test_the_work_of_a_decision_grows_linearly_with_its_pod_sets() -> None:
    """Twice as many PodSets cost at most a fifth more than twice as much, from 50 to 400."""
    decided(2)  # what is worked out once for a cluster is not the object's
    decisions: dict[int, Decision] = {}

    def counted(pod_sets: int) -> None:
        decisions[pod_sets] = decided(pod_sets)

    work = {size: calls(lambda size=size: counted(size), builtins=True) for size in (50, 100, 200, 400)}  # type: ignore[misc]
    assert "cost limit" not in decisions[400].response.message
    growth = {size: work[2 * size] / work[size] for size in (50, 100, 200)}
    assert max(growth.values()) < 2.4, (work, growth)


def test_the_work_of_placing_pod_sets_grows_linearly_too() -> None:
    """Where each PodSet is given its own nodes, ranks and affinity."""
    wide = racks(8, 8)
    decisions: dict[int, Decision] = {}

    def placed(pod_sets: int) -> None:
        request = from_object(job_set(pod_sets))
        decisions[pod_sets] = decide(request, POLICIES, wide, "mutate", ENVIRONMENT)

    placed(2)
    work = {size: calls(lambda size=size: placed(size), builtins=True) for size in (100, 200, 400)}  # type: ignore[misc]
    plan = decisions[400].plan
    assert plan is not None
    assert plan.decision == "admitted"
    assert work[200] < 2.1 * work[100], work
    assert work[400] < 2.1 * work[200], work


@pytest.mark.parametrize("pod_sets", [5, 20])
def test_a_template_is_read_once_for_each_time_that_a_policy_changed_it(
    pod_sets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of one template does not cause the others to be read again."""
    reads: list[ReadTemplates] = []
    begin = ReadTemplates.__init__

    def noted(self: ReadTemplates) -> None:
        begin(self)
        reads.append(self)

    monkeypatch.setattr(ReadTemplates, "__init__", noted)
    obj = job_set(pod_sets)
    context = RequestContext.of(from_object(obj), POLICIES, SNAPSHOT, ENVIRONMENT)
    mutated = run_mutating(POLICIES, context.request, obj, Evaluation(context, obj))
    changed = sum(len({place(row) for row in effect.patch}) for effect in mutated.effects)
    assert mutated.effects
    assert max(read.reads for read in reads) <= pod_sets + changed


def test_places_of_twice_the_jobs_with_a_domain_each_take_twice_the_work() -> None:
    """Each template looks up its PodSet without searching all gangs."""
    obj = {size: annotated(job_set(size), {EXCLUSIVE_JOBSET: "example.com/rack"}) for size in (100, 200)}
    work = {size: calls(lambda size=size: places(obj[size])) for size in obj}  # type: ignore[misc]
    assert work[200] < 2.1 * work[100], work


def place(operation: Any) -> str:
    """The replicated job that an operation concerns, or the object itself for other operations."""
    steps = str(operation["path"]).split("/")
    return "/".join(steps[:4]) if steps[1:3] == ["spec", "replicatedJobs"] else ""


def alike_job_set(pod_sets: int) -> dict[str, Any]:
    """The same with equal templates."""
    obj = job_set(pod_sets)
    for job in obj["spec"]["replicatedJobs"]:
        job["template"]["spec"]["template"]["spec"]["containers"][0]["image"] = "trainer:1"
    return obj


def test_templates_that_are_alike_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition that reads nothing of a PodSet's own comes to the same on all of them: however many there
    are, it is evaluated as often. Without a cluster, for a plan gives each PodSet its own nodes."""
    conditions = {id(row.expression) for policy in POLICIES.policies for row in policy.conditions}

    def of_a_condition(each: Expression) -> str | None:
        return each.label if id(each) in conditions and not each.reads.pod_set else None

    evaluated = evaluations(monkeypatch, of_a_condition)

    def judged(pod_sets: int) -> int:
        evaluated.clear()
        decision = decide(from_object(alike_job_set(pod_sets)), POLICIES, None, "mutate", ENVIRONMENT)
        assert decision.effects
        return len(evaluated)

    judged(3)  # the first request of all also evaluates what reads the request alone
    assert judged(5) == judged(10) > 0
