"""Messages of refusals in kubectl: "never" only with a proof, and no blame for values that policies wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import cluster as drawn
from tests.policies.helpers import mutate
from webhook.admission.response import refusal
from webhook.policy import Failure, Finding, Findings
from webhook.policy.loading.files import load_paths

Json = dict[str, Any]
GPU = "nvidia.com/gpu"


def pod_of(gpus: int = 1, **spec: Any) -> Json:
    """A pod's spec with one container."""
    limits = {GPU: gpus} if gpus else {"cpu": "1"}
    return {"containers": [{"name": "main", "image": "trainer", "resources": {"limits": limits}}], **spec}


def pod(spec: Json, **metadata: Any) -> Json:
    """A pod."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train", **metadata}, "spec": spec}


def job(spec: Json, count: int = 1, **metadata: Any) -> Json:
    """An Indexed Job, which is a gang."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", **metadata},
        "spec": {
            "completionMode": "Indexed",
            "parallelism": count,
            "completions": count,
            "template": {"spec": {"restartPolicy": "Never", **spec}},
        },
    }


def deployment(spec: Json) -> Json:
    """A Deployment, whose pods each run by themselves."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "serve"}},
            "template": {"metadata": {"labels": {"app": "serve"}}, "spec": spec},
        },
    }


HALL = drawn("r1: a b")
NEVER = "can never run"
NOT_ON_THESE = "cannot run on the nodes that the cluster has now"
OF_FOUR = {
    "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
    "annotations": {"kueue.x-k8s.io/pod-group-total-count": "4"},
}
HELD = {"bayplan.dev/reserve": "nodes"}


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (job(pod_of(8), 3), NEVER),
        (pod(pod_of(9)), NEVER),
        (pod(pod_of(9), **OF_FOUR), NOT_ON_THESE),
        (deployment(pod_of(9)), NOT_ON_THESE),
        (job(pod_of(0, nodeSelector={"pool": "cpu"}), annotations=HELD), NOT_ON_THESE),
    ],
    ids=["gang", "pod", "pod-of-a-larger-group", "pods-that-run-by-themselves", "no-device"],
)
def test_never_is_said_of_all_that_starts_together(obj: Json, words: str) -> None:
    """A refusal says "can never run" only of a whole gang that lacks devices."""
    response = mutate(obj, on=HALL).response
    assert not response.allowed
    assert words in response.message
    assert (NEVER in response.message) is (words == NEVER)


def test_a_gang_that_fits_once_nodes_are_uncordoned_is_queued() -> None:
    """An administrator may uncordon the nodes, so nothing is proved."""
    response = mutate(job(pod_of(8), 2), on=drawn("r1: a\nr1: b cordoned")).response
    assert response.allowed
    assert any("is queued: " in warning and "1 is cordoned" in warning for warning in response.warnings)


def test_what_a_policy_refuses_is_not_told_as_queued(tmp_path: Path) -> None:
    """The gang lacks a team label and would wait for a cordoned node; only the refusal is reported."""
    validation = {"expression": "'team' in object.metadata.?labels.orValue({})", "message": "no team"}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "team"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["batch"],
                        "apiVersions": ["v1"],
                        "resources": ["jobs"],
                        "operations": ["CREATE"],
                    }
                ]
            },
            "validations": [validation],
        },
    }
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    response = mutate(job(pod_of(8), 2), load_paths([tmp_path]), drawn("r1: a\nr1: b cordoned")).response
    assert not response.allowed
    assert response.message.endswith("no team")
    assert "queued" not in " ".join(response.warnings)


def test_of_very_many_refusals_by_policies_the_first_are_told_and_the_others_counted() -> None:
    """Failures of mutating policies come first; the code is that of the first refusal."""
    failed = [Failure(f"m{n}", "", "", "broken", fatal=True) for n in range(4)]
    denials = tuple(Finding(f"v{n}", "", "", "no", "Forbidden", 403, ("Deny",)) for n in range(40))
    response = refusal(failed, Findings(denials=denials), None)
    assert response is not None
    assert response.message.startswith("policy 'm0': broken; policy 'm1': broken; ")
    assert response.message.endswith("policy 'v5': no; and 34 more")
    assert response.code == 422
    alone = refusal([], Findings(denials=denials), None)
    assert alone is not None
    assert (alone.code, alone.reason) == (403, "Forbidden")


def serving(**annotations: str) -> Json:
    """A JobSet of prefill and decode, of which disaggregated-serving requires the coarsest level."""
    jobs = [
        {
            "name": role,
            "template": {"spec": {"parallelism": 2, "completions": 2, "template": {"spec": pod_of(8)}}},
        }
        for role in ("prefill", "decode")
    ]
    metadata = {"name": "serve", "annotations": annotations}
    api = "jobset.x-k8s.io/v1alpha2"
    return {"apiVersion": api, "kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": jobs}}


def test_a_level_that_policies_require_is_not_blamed_on_the_object() -> None:
    """The object states no level, so that it cannot leave one out. What the message says instead works."""
    nodes = drawn("r1: a b c\nr2: d")
    refused = mutate(serving(), on=nodes).response
    assert refused.message.endswith(
        "Policies added the required level rack: the object states none, and a level in "
        "bayplan.dev/preferred-level or bayplan.dev/required-level replaces it."
    )
    assert mutate(serving(**{"bayplan.dev/preferred-level": "rack"}), on=nodes).response.allowed
    own = mutate(serving(**{"bayplan.dev/required-level": "rack"}), on=nodes).response
    assert not own.allowed
    assert "Policies added" not in own.message
