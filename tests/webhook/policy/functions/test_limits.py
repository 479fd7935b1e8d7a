"""The named functions over LimitRanges and ResourceQuotas."""

from __future__ import annotations

from webhook.policy.functions.limits import broken, exceeded

GI = 2**30


def pod(**limits):
    """A pod of one container with these limits."""
    return {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}


def bound(kind, minimum=None, maximum=None):
    """An entry of `cluster.limits[ns].ranges`."""
    return {"name": "sizes", "type": kind, "min": minimum or {}, "max": maximum or {}}


def test_each_broken_bound_is_told_with_both_numbers():
    """Containers one by one, the pod by its effective request."""
    ranges = [bound("Container", {"memory": 8 * GI}, {"cpu": 4000}), bound("Pod", None, {"cpu": 5000})]
    assert broken(pod(cpu="6", memory="4Gi"), ranges) == [
        "container main has 6 cpu, and LimitRange sizes allows at most 4",
        "container main has 4Gi memory, and LimitRange sizes wants at least 8Gi",
        "the pod has 6 cpu, and LimitRange sizes allows at most 5",
    ]


def test_the_overhead_of_a_runtime_class_does_not_count_against_a_limit_range():
    """As the API server has it: a LimitRange bounds what the containers ask for."""
    within = pod(cpu="5")
    within["spec"]["overhead"] = {"cpu": "1"}
    assert broken(within, [bound("Pod", None, {"cpu": 5000})]) == []


def test_what_is_within_bounds_or_bounded_otherwise_is_silent():
    """A PersistentVolumeClaim's bounds are no pod's."""
    ranges = [
        bound("Container", {"cpu": 1000}, {"cpu": 6000}),
        bound("PersistentVolumeClaim", None, {"cpu": 1}),
    ]
    assert broken(pod(cpu="6"), ranges) == []
    assert broken({"spec": None}, ranges) == []


def test_all_pods_of_all_replicas_count_against_a_quota():
    """Requests and limits alike."""
    gang = {"replicas": 2, "podSets": [{"count": 3, "resources": {"cpu": 8000, "pods": 1}}]}
    quota = {
        "name": "team",
        "hard": {"limits.cpu": 64_000, "pods": 9, "count/jobs.batch": 1},
        "left": {"limits.cpu": 40_000, "pods": 6, "count/jobs.batch": 0},
    }
    assert exceeded(gang, [quota]) == ["its pods ask for 48 cpu, and ResourceQuota team has 40 of 64 left"]


def test_a_quota_of_requests_and_equal_limits_is_named_once():
    """kubectl printed each sentence twice."""
    gang = {"replicas": 1, "podSets": [{"count": 1, "resources": {"cpu": 8000}}]}
    amounts = {"requests.cpu": 4000, "limits.cpu": 4000}
    quota = {"name": "team", "hard": amounts, "left": amounts}
    assert exceeded(gang, [quota]) == ["its pods ask for 8 cpu, and ResourceQuota team has 4 of 4 left"]
