"""Policies in upstream's format: a real API server and Bayplan make the same of the same pod."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.api import ApiError, Json
from tests.e2e.compare import content, differences
from tests.e2e.fleet import namespace
from tests.e2e.hook import BAYPLAN
from tests.e2e.processes import wait_until
from tests.e2e.stage import Cluster

CASES = sorted((Path(__file__).parent / "upstream").glob("*.yaml"))
NAMESPACE = "upstream-a"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": NAMESPACE,
        "labels": {"app": "p"},
        "annotations": {"note": "x"},
    },
    "spec": {
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "main",
                "image": "busybox:latest",
                "env": [{"name": "LEVEL", "value": "debug"}, {"name": "KEPT", "value": "1"}],
                "resources": {"limits": {"memory": "1024Mi", "cpu": "500m"}},
            },
            {"name": "second", "image": "busybox:1", "resources": {"limits": {"memory": "64Mi", "cpu": "1"}}},
        ],
    },
}


def names(case: Path) -> str:
    """The name of a case, from its file."""
    return case.stem


def of_kind(start: str, *, refused: bool) -> list[Path]:
    """The cases whose policies have this kind and which refuse the pod, or do not."""
    cases = [case for case in CASES if f"\nkind: {start}" in case.read_text()]
    return [case for case in cases if case.stem.startswith("refuse-") is refused]


@pytest.fixture
def base(cluster: Cluster) -> Json:
    """The pod as the API server would store it without policies."""
    namespace(cluster.api, NAMESPACE)
    return stored(cluster)


@pytest.fixture
def policies(cluster: Cluster, base: Json, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The policies of the case, each bound, in the API server and in a file for Bayplan."""
    bodies = [body for body in yaml.safe_load_all(request.param.read_text()) if body]
    bodies += [binding(body) for body in bodies if body["kind"].endswith("AdmissionPolicy")]
    path = tmp_path / "policies.yaml"
    path.write_text(yaml.safe_dump_all(bodies))
    output = cluster.kubectl("apply", "-f", str(path))
    assert output.status == 0, output.err
    yield path
    cluster.kubectl("delete", "-f", str(path), "--wait=true")
    wait_until(lambda: stored(cluster) == base, "the policies to go")


def binding(policy: Json) -> Json:
    """The binding of a policy; its parameters are the ConfigMap of the case."""
    name = policy["metadata"]["name"]
    spec: Json = {"policyName": name}
    if "paramKind" in policy["spec"]:
        spec["paramRef"] = {
            "name": "defaults",
            "namespace": NAMESPACE,
            "parameterNotFoundAction": "Deny",
        }
    if policy["kind"].startswith("Validating"):
        spec["validationActions"] = ["Deny"]
    version, kind = policy["apiVersion"], f"{policy['kind']}Binding"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def stored(cluster: Cluster) -> Json:
    """The pod as the API server would store it now, or its error."""
    try:
        return content(cluster.api.create(PODS, POD, dryRun="All"))
    except ApiError as error:
        return {"refused": str(error)}


def mutate(base: Json, policies: Path) -> tuple[int, Any, str]:
    """The result of `bayplan mutate` for the pod: exit status, object, standard error."""
    command = [BAYPLAN, "mutate", "-f", "-", "-p", str(policies), "-o", "json"]
    done = subprocess.run(
        command, input=json.dumps(base), capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, json.loads(done.stdout) if done.returncode == 0 else None, done.stderr


@pytest.mark.parametrize("policies", of_kind("Mutating", refused=False), ids=names, indirect=True)
def test_an_upstream_mutating_policy_does_here_what_it_does_there(
    cluster: Cluster, base: Json, policies: Path
) -> None:
    """Field by field the same pod; the API server adds defaults only."""
    status, ours, stderr = mutate(base, policies)
    assert status == 0, stderr
    ours = ours[0] if isinstance(ours, list) else ours
    assert ours != base, "the policy does something"

    def apart() -> list[str]:
        from_server = stored(cluster)
        return differences(ours, from_server) + differences(from_server.get("metadata"), ours["metadata"])

    try:
        wait_until(lambda: not apart(), "the two to agree", 20)
    except TimeoutError:
        assert apart() == []


@pytest.mark.parametrize("policies", of_kind("Validating", refused=True), ids=names, indirect=True)
def test_an_upstream_validating_policy_refuses_here_what_it_refuses_there(
    cluster: Cluster, base: Json, policies: Path
) -> None:
    """Both say no, and Bayplan's words hold the policy's own message."""

    wait_until(lambda: "refused" in stored(cluster), "the API server to refuse", 20)
    refusal = stored(cluster)["refused"].rpartition("denied request: ")[2]
    status, _, stderr = mutate(base, policies)
    assert status == 1
    assert refusal.partition("expression '")[0] in stderr, (refusal, stderr)


@pytest.mark.parametrize("policies", of_kind("Mutating", refused=True), ids=names, indirect=True)
def test_an_upstream_mutating_policy_that_may_not_do_what_it_does_refuses_in_both(
    cluster: Cluster, base: Json, policies: Path
) -> None:
    """Both say no, and name the same field."""
    wait_until(lambda: "refused" in stored(cluster), "the API server to refuse", 20)
    status, _, stderr = mutate(base, policies)
    assert status == 1
    field = stored(cluster)["refused"].rpartition(": .")[2].partition(":")[0]
    assert field
    assert field in stderr
