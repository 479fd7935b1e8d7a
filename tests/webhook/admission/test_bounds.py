"""The size of one object's request is limited before any work is done for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import racks
from tests.webhook.admission.test_growth_of_work import job_set
from webhook.admission import bounds
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.policy import PolicySet, from_object
from webhook.workloads import read

SNAPSHOT = racks(2, 4)


def job(pods: int = 2, **spec: Any) -> dict[str, Any]:
    """An Indexed Job of this many pods of one GPU; `spec` is added to the pod spec."""
    container = {"name": "main", "image": "trainer", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {
        "metadata": {"labels": {"app": "train"}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "research"},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "template": template,
        },
    }


def spread(constraints: int) -> dict[str, Any]:
    own = {"matchLabels": {"app": "train"}}
    keys = ("kubernetes.io/hostname", "zone", "rack")[:constraints]
    rows = [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own}
        for key in keys
    ]
    return {"topologySpreadConstraints": rows}


def affinity(terms: int, requirements: int) -> dict[str, Any]:
    rows = [
        {
            "matchExpressions": [
                {"key": f"key-{term}-{row}", "operator": "In", "values": ["a"]} for row in range(requirements)
            ]
        }
        for term in range(terms)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": rows}}
    return {"affinity": {"nodeAffinity": required}}


def claims(count: int) -> dict[str, Any]:
    return {"resourceClaims": [{"name": f"c{n}", "resourceClaimName": f"c{n}"} for n in range(count)]}


def decided(obj: dict[str, Any], old: dict[str, Any] | None = None) -> Decision:
    request = from_object(obj, "UPDATE" if old else "CREATE", old_object=old)
    return decide(request, PolicySet(), SNAPSHOT, "mutate")


@pytest.mark.parametrize(
    ("obj", "bound", "words"),
    [
        (job(3000, **spread(2)), bounds.MOST_CONSTRAINED, "6000 pods × constraints"),
        (job(2, **affinity(1000, 20)), bounds.MOST_REQUIREMENTS, "20000 requirements in 1000 required"),
        (job(2, **claims(100)), bounds.MOST_CLAIMS, "100 claims"),
        (job_set(600), bounds.MOST_POD_SETS, "600 PodSets"),
    ],
    ids=["pods × constraints", "affinity", "claims", "PodSets"],
)
def test_what_asks_for_more_is_refused_with_number_and_bound(
    obj: dict[str, Any], bound: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is refused before it is planned."""
    monkeypatch.setattr("webhook.admission.plan_step.plan_in_turn", None)
    decision = decided(obj)
    message = decision.response.message
    assert (decision.response.allowed, decision.response.code) == (False, 422)
    assert words in message
    assert f"at most {bound}" in message
    assert "What would work" in message


@pytest.mark.parametrize(
    "obj",
    [job(2500, **spread(2)), job(2, **affinity(100, 10)), job(2, **claims(64))],
    ids=["pods × constraints", "affinity", "claims"],
)
def test_what_asks_for_as_much_as_the_bound_is_planned(obj: dict[str, Any]) -> None:
    """A request of exactly the bound is allowed."""
    bounds.check_bounds(read(obj))


def test_what_exists_already_may_be_changed_where_its_templates_stay() -> None:
    """A finalizer can be removed from an object that is above today's bounds."""
    old = job(3000, **spread(2))
    new = {**old, "metadata": {**old["metadata"], "labels": {"team": "vision"}}}
    assert decided(new, old).response.allowed
