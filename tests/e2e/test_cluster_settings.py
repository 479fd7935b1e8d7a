"""The ConfigMap of parameters on a real control plane: changes take effect in every replica without a
restart.

The replicas act with the rights of 30-rbac.yaml only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.api import Json
from tests.e2e.processes import wait_until
from tests.e2e.replicas import GPU, job, reservations
from tests.e2e.rollout import SYSTEM, Rollout, rollout_of
from tests.e2e.stage import Cluster

NAME = "bayplan-parameters"
JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
SOON = 5.0
"""Seconds in which a change counts in every replica; a watch tells it in milliseconds."""


@pytest.fixture(scope="module")
def rollout(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rollout]:
    """Two replicas with the account's rights, on one rack of two nodes."""
    with rollout_of(cluster, tmp_path_factory.mktemp("settings"), 1, 2) as rollout:
        rollout.add()
        rollout.add()
        yield rollout


@pytest.fixture(autouse=True)
def as_installed(rollout: Rollout) -> Iterator[None]:
    """Each test begins with the manifest's parameters and with the replicas of the start."""
    rollout.apply("38-parameters.yaml")
    wait_until(lambda: not problems(rollout), "the installed parameters to be in force", SOON)
    running = [replica.process.popen.pid for replica in rollout.replicas]
    yield
    assert [replica.process.popen.pid for replica in rollout.replicas] == running
    assert all(replica.process.popen.poll() is None for replica in rollout.replicas), "none was restarted"
    rollout.cluster.kubectl("delete", "configmap", NAME, "-n", SYSTEM, "--ignore-not-found")


def choose(rollout: Rollout, **data: str | None) -> None:
    """Edits the ConfigMap: two underscores in a name mean a dot, one means a dash; None removes a key."""
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in data.items()}
    patch = json.dumps({"data": keys})
    output = rollout.cluster.kubectl("patch", "configmap", NAME, "-n", SYSTEM, "--type=merge", "-p", patch)
    assert output.status == 0, output.err


def readiness_details(rollout: Rollout) -> list[Json]:
    """The text of every replica's /readyz; each must be ready."""
    answers = [replica.readiness() for replica in rollout.replicas]
    assert [status for status, _ in answers] == [200] * len(answers)
    return [detail for _, detail in answers]


def problems(rollout: Rollout) -> list[str]:
    """The problems that any replica reports."""
    return [problem for detail in readiness_details(rollout) for problem in detail["problems"]]


def in_force(rollout: Rollout, key: str) -> set[Any]:
    """The values of a setting in all replicas."""
    return {detail["settings"][key] for detail in readiness_details(rollout)}


def is_mended(rollout: Rollout, namespace: str) -> bool:
    """Returns whether a pod with a GPU and without CPUs gets CPUs, by a dry run through the API server."""
    container = {"name": "main", "image": "busybox", "resources": {"limits": {GPU: "1"}}}
    pod = {"metadata": {"name": "dry"}, "spec": {"containers": [container]}}
    stored = rollout.api.create(f"/api/v1/namespaces/{namespace}/pods", pod, dryRun="All")
    return "cpu" in stored["spec"]["containers"][0]["resources"]["requests"]


def calls(rollout: Rollout, namespace: str) -> set[bool]:
    """The results of `is_mended` for enough calls that each replica answers one."""
    return {is_mended(rollout, namespace) for _ in range(2 * len(rollout.replicas))}


def test_an_edit_counts_in_every_replica_within_seconds(rollout: Rollout) -> None:
    """A policy is switched off for one namespace and on again; the other namespace is as before."""
    assert calls(rollout, "research") == calls(rollout, "inference") == {True}
    choose(rollout, namespace__research__guaranteed_qos__enabled="false")
    wait_until(lambda: calls(rollout, "research") == {False}, "the policy to be off in research", SOON)
    assert calls(rollout, "inference") == {True}
    choose(rollout, namespace__research__guaranteed_qos__enabled=None)
    wait_until(lambda: calls(rollout, "research") == {True}, "the policy to be on again", SOON)


def test_readyz_of_every_replica_says_what_is_in_force(rollout: Rollout) -> None:
    """The value, and one revision for all."""
    before = in_force(rollout, "revision")
    choose(rollout, reserve__default="nodes")
    wait_until(lambda: in_force(rollout, "reserve.default") == {"nodes"}, "the default to be in force", SOON)
    after = in_force(rollout, "revision")
    assert len(before) == len(after) == 1
    assert before != after
    assert all(
        f"{SYSTEM}/ConfigMap/{NAME}" in detail["settings"]["from"] for detail in readiness_details(rollout)
    )


def test_a_bad_value_keeps_the_last_good_settings_and_is_told(rollout: Rollout) -> None:
    """With object, key, value and the valid values; every replica stays ready, and mends what it mended."""
    choose(rollout, reserve__default="nodes")
    wait_until(lambda: in_force(rollout, "reserve.default") == {"nodes"}, "the default to be in force", SOON)
    choose(rollout, reserve__default="rack", guaranteed_qos__enabled="false")
    expected = f"{SYSTEM}/ConfigMap/{NAME}: data[reserve.default]: 'rack' is not valid; use auto or domain or"
    wait_until(
        lambda: all(
            any(expected in problem for problem in detail["problems"])
            for detail in readiness_details(rollout)
        ),
        "every replica to tell it",
        SOON,
    )
    assert in_force(rollout, "reserve.default") == {"nodes"}
    assert calls(rollout, "research") == {True}, "of a bad ConfigMap nothing is taken up"
    wait_until(lambda: "the last good ones serve" in rollout.output(), "the log to tell it", SOON)
    choose(rollout, reserve__default="none", guaranteed_qos__enabled=None)
    wait_until(lambda: in_force(rollout, "reserve.default") == {"none"}, "the mended one", SOON)
    assert not problems(rollout)


def test_a_tenants_config_map_of_that_name_chooses_nothing(rollout: Rollout) -> None:
    """Whoever may write ConfigMaps in a namespace of the cluster switches nothing off, not even there."""
    path = "/api/v1/namespaces/research/configmaps"
    body = {"metadata": {"name": NAME}, "data": {"guaranteed-qos.enabled": "false", "mode": "off"}}
    rollout.api.create(path, body)
    try:
        choose(rollout, namespace__inference__guaranteed_qos__enabled="false")
        wait_until(lambda: calls(rollout, "inference") == {False}, "a later change to be seen", SOON)
        assert calls(rollout, "research") == {True}
    finally:
        rollout.api.delete(f"{path}/{NAME}")


def test_a_deleted_config_map_gives_the_defaults_and_a_new_one_counts(rollout: Rollout) -> None:
    """Nobody chooses any more; no replica minds."""
    choose(rollout, reserve__default="nodes")
    wait_until(lambda: in_force(rollout, "reserve.default") == {"nodes"}, "the default to be in force", SOON)
    assert rollout.cluster.kubectl("delete", "configmap", NAME, "-n", SYSTEM).status == 0
    wait_until(lambda: in_force(rollout, "reserve.default") == {"auto"}, "the defaults", SOON)
    assert not problems(rollout)
    rollout.apply("38-parameters.yaml")
    choose(rollout, reserve__default="domain")
    wait_until(lambda: in_force(rollout, "reserve.default") == {"domain"}, "the new one", SOON)


def test_keys_of_a_namespace_that_does_not_exist_are_a_warning(rollout: Rollout) -> None:
    """And no problem."""
    choose(rollout, namespace__nowhere__mode="off")
    expected = ["namespace.nowhere.mode: there is no namespace nowhere"]
    wait_until(
        lambda: all(detail["settings"]["warnings"] == expected for detail in readiness_details(rollout)),
        "it",
        SOON,
    )
    assert not problems(rollout)


def test_a_gang_that_is_let_in_later_holds_what_the_settings_of_its_namespace_say(rollout: Rollout) -> None:
    """The controller reads it as decisions do; a reservation from before the change stays as it is."""
    first, second = f"{JOBS}/first", f"{JOBS}/second"
    try:
        rollout.api.create(JOBS, job("first", 2))
        wait_until(lambda: held(rollout) == {"first": "domain"}, "the first to hold the rack", 30)
        choose(rollout, namespace__research__reserve__default="nodes")
        wait_until(lambda: calls(rollout, "research") == {True}, "every replica to answer", SOON)
        rollout.api.create(JOBS, job("second", 2, gpus=4))
        wait_until(lambda: rollout.api.items(PODS, labelSelector="job-name=second"), "its gated pods", 30)
        assert held(rollout) == {"first": "domain"}
        rollout.api.delete(first)
        wait_until(lambda: held(rollout) == {"second": "nodes"}, "the second to be let in", 60)
    finally:
        rollout.api.delete(first)
        rollout.api.delete(second)
        wait_until(lambda: not held(rollout), "the reservations to go", 60)


def held(rollout: Rollout) -> dict[str, str]:
    """How each Job in `research` holds its nodes."""
    return {gang.rpartition("/")[2]: item["spec"]["mode"] for gang, item in reservations(rollout.api).items()}
