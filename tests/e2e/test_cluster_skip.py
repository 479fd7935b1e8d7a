"""A policy decides who may exclude a workload from planning: that of docs/recipes/skip, in the API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.binaries import ROOT
from tests.e2e.kubectl import Output
from tests.e2e.processes import wait_until
from tests.e2e.replicas import job
from tests.e2e.stage import Cluster

POLICY = ROOT / "docs" / "recipes" / "skip" / "policy.yaml"
TEAMS = ("research", "gpu-platform")


@pytest.fixture(scope="module")
def teams(cluster: Cluster) -> Iterator[Cluster]:
    """Two groups that may both create Jobs, and the policy."""
    kubectl = cluster.kubectl
    for team in TEAMS:
        output = kubectl(
            "create", "clusterrolebinding", f"skip-{team}", "--clusterrole=edit", f"--group={team}"
        )
        assert output.status == 0, output.err
    assert kubectl("apply", "-f", str(POLICY)).status == 0
    yield cluster
    kubectl("delete", "-f", str(POLICY))
    for team in TEAMS:
        kubectl("delete", "clusterrolebinding", f"skip-{team}")


def applied(cluster: Cluster, group: str) -> Output:
    """A dry run of a Job that opts out of planning, by a member of a group."""
    body = job("skips", 1)
    body["metadata"]["annotations"]["bayplan.dev/skip"] = "true"
    user = ("--as=ann", f"--as-group={group}", "--as-group=system:authenticated")
    return cluster.kubectl(*user, "apply", "--dry-run=server", "-f", "-", text=yaml.safe_dump(body))


def test_only_the_group_that_the_policy_names_takes_workloads_out_of_the_plan(teams: Cluster) -> None:
    """Others are told whom to ask."""
    wait_until(lambda: applied(teams, "research").status == 1, "the policy to count", 60)
    assert "ask the group gpu-platform to set it" in applied(teams, "research").err
    output = applied(teams, "gpu-platform")
    assert output.status == 0, output.err
