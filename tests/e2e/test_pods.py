"""The pods that real controllers create, and the nodes to which a real scheduler binds them."""

from __future__ import annotations

import json

import pytest

from tests.e2e.api import Json
from tests.e2e.hook import bayplan
from tests.e2e.processes import wait_until
from tests.e2e.stage import Site, parameter
from tests.manifests.examples import EXAMPLES, Example, examples

pytestmark = pytest.mark.usefixtures("clean")
BUILT_IN = ("job-", "pod-", "pods-", "deployment-")
"""Examples of kinds whose controllers run here."""
LET_IN = [example for example in examples() if not example.refused and example.manifest.startswith(BUILT_IN)]
RESERVATION = "bayplan.dev/reservation"


def each(rows: list[Example]) -> pytest.MarkDecorator:
    """One test per row of the table; the policies send pods to the scheduler that runs here."""
    ids = [f"{row.manifest} on {' and '.join(row.clusters)}" for row in rows]
    values = [(parameter(row.clusters, "default-scheduler"), row) for row in rows]
    return pytest.mark.parametrize(("site", "example"), values, ids=ids, indirect=["site"], scope="module")


@each([row for row in LET_IN if "admitted" in (row.decisions or ())])
def test_the_scheduler_binds_every_pod_where_the_plan_put_it(site: Site, example: Example) -> None:
    """Pods run on the nodes of the plan's domain, as many as the plan counts; each is Guaranteed.

    Pods that hold no domain, and come at the same moment, pass over each other's node (docs/decisions/0098):
    each runs where its own reservation is.
    """
    manifest = EXAMPLES / example.manifest
    plan = json.loads(bayplan("plan", "-c", str(site.hook.picture), "-f", str(manifest), "-o", "json"))
    planned = sum(assignment["count"] for gang in plan["gangs"] for assignment in gang["assignments"])
    output = site.apply(manifest)
    assert output.status == 0, output.err
    pods = running(site, planned)
    whole = {node for gang in plan["gangs"] if gang["reserves"] for node in nodes_in(site, gang)}
    held = {reservation.id: reservation.touched for reservation in site.hook.reservations()}
    for pod in pods:
        allowed = whole or held[pod["metadata"]["annotations"][RESERVATION]]
        assert pod["spec"]["nodeName"] in allowed
    assert {pod["status"]["qosClass"] for pod in pods} == {"Guaranteed"}


@each([row for row in LET_IN if "admitted" in (row.decisions or ()) and row.manifest.startswith("job-")])
def test_the_pods_of_a_job_find_their_gangs_reservation(site: Site, example: Example) -> None:
    """The Job controller's pods carry the reservation's id, and reserve nothing of their own."""
    site.apply(EXAMPLES / example.manifest)
    (held,) = site.hook.reservations()
    pods = running(site, sum(assignment.count for assignment in held.assignments))
    assert {pod["metadata"]["annotations"][RESERVATION] for pod in pods} == {held.id}
    assert [reservation.id for reservation in site.hook.reservations()] == [held.id]
    assert {reservation.state for reservation in site.hook.reservations()} == {"claimed"}


@each([row for row in LET_IN if row.decisions == ("queued",)])
def test_the_pods_of_a_queued_gang_wait_behind_a_scheduling_gate(site: Site, example: Example) -> None:
    """They are made, and the scheduler does not look at them one by one."""
    site.apply(EXAMPLES / example.manifest)
    wait_until(lambda: len(site.pods()) == 18, "the Job controller to make 18 pods", 60)
    gates = {gate["name"] for pod in site.pods() for gate in pod["spec"]["schedulingGates"]}
    assert gates == {"bayplan.dev/queued"}
    reasons = [condition.get("reason") for pod in site.pods() for condition in pod["status"]["conditions"]]
    assert set(reasons) == {"SchedulingGated"}


def running(site: Site, count: int) -> list[Json]:
    """The running pods, once their number is the expected one."""

    def arrived() -> bool:
        return len([pod for pod in site.pods() if pod["status"]["phase"] == "Running"]) == count

    try:
        wait_until(arrived, f"{count} pods to run", 60)
    except TimeoutError as error:
        pods = [(pod["metadata"]["name"], pod["spec"].get("nodeName"), pod["status"]) for pod in site.pods()]
        raise AssertionError(f"{error}; there are {json.dumps(pods, indent=1)[:3000]}") from None
    return site.pods()


def nodes_in(site: Site, gang: Json) -> set[str]:
    """The nodes whose labels put them into the domain that holds the gang."""
    topologies = site.cluster.api.items("/apis/kai.scheduler/v1alpha1/topologies")
    levels = {body["metadata"]["name"]: body["spec"]["levels"] for body in topologies}[gang["topology"]]
    wanted = dict(zip((level["nodeLabel"] for level in levels), gang["domain"], strict=False))
    nodes = site.cluster.api.items("/api/v1/nodes")
    return {n["metadata"]["name"] for n in nodes if wanted.items() <= n["metadata"]["labels"].items()}
