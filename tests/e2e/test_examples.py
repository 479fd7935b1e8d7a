"""`kubectl apply` of every example: what a real API server stores, refuses and prints."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from tests.e2e.compare import content, differences
from tests.e2e.hook import bayplan
from tests.e2e.processes import wait_until
from tests.e2e.stage import Site, parameter
from tests.manifests.examples import EXAMPLES, Example, examples

pytestmark = pytest.mark.usefixtures("clean")
ALL = examples()
LET_IN = [example for example in ALL if not example.refused]
ADMITTED = [example for example in LET_IN if "admitted" in (example.decisions or ())]
BY_POD = ("deployment-", "pods-")
"""Nothing is reserved for these as a whole: their pods come one by one."""
REFUSED = [example for example in ALL if example.refused]


def each(rows: list[Example]) -> pytest.MarkDecorator:
    """One test per row of the table, sorted by cluster."""
    ids = [f"{row.manifest} on {' and '.join(row.clusters)}" for row in rows]
    values = [(parameter(row.clusters, "default"), row) for row in rows]
    return pytest.mark.parametrize(("site", "example"), values, ids=ids, indirect=["site"], scope="module")


@each([row for row in LET_IN if not row.manifest.startswith("pods-")])
def test_a_dry_run_answers_as_the_real_thing_does_and_reserves_nothing(site: Site, example: Example) -> None:
    """`--dry-run=server` prints the object that is stored afterwards, with the same warnings.

    So for one object; several in one file are several requests, and a dry run keeps nothing between them.
    """
    rehearsal = site.apply(EXAMPLES / example.manifest, "--dry-run=server", "-o", "yaml")
    assert rehearsal.status == 0, rehearsal.err
    assert site.hook.reservations() == []
    performance = site.apply(EXAMPLES / example.manifest, "-o", "yaml")
    assert [content(obj) for obj in performance.objects] == [content(obj) for obj in rehearsal.objects]
    assert performance.warnings == rehearsal.warnings


@each(LET_IN)
def test_what_is_stored_is_what_bayplan_mutate_prints(site: Site, example: Example) -> None:
    """The preview without a cluster connection, and the API server, agree field by field."""
    manifest = EXAMPLES / example.manifest
    preview = list(yaml.safe_load_all(bayplan("mutate", "-f", str(manifest), "-c", str(site.hook.picture))))
    stored = site.apply(manifest, "-o", "yaml").objects
    assert [line for pair in zip(preview, stored, strict=True) for line in differences(*pair)] == []


@each([row for row in ADMITTED if not row.manifest.startswith(BY_POD)])
def test_what_is_reserved_is_what_bayplan_plan_says(site: Site, example: Example) -> None:
    """The book holds the gangs, domains and nodes of the plan, and the plan is where the example says."""
    manifest = EXAMPLES / example.manifest
    plan = json.loads(bayplan("plan", "-c", str(site.hook.picture), "-f", str(manifest), "-o", "json"))
    places = ["/".join(gang["domain"]) for gang in plan["gangs"]]
    assert all(f"{f}/".startswith(f"{p}/") for f, p in zip(places, example.places, strict=True)), places
    site.apply(manifest)
    held = {
        reservation.gang: [list(domain) for domain in reservation.domains]
        for reservation in site.hook.reservations()
    }
    assert held == {gang["name"]: gang["reserves"] for gang in plan["gangs"]}


@each(REFUSED)
def test_a_refusal_is_printed_by_kubectl_and_nothing_is_stored(site: Site, example: Example) -> None:
    """What can never run is refused at once, with a reason and numbers; nothing is stored or reserved."""
    output = site.apply(EXAMPLES / example.manifest)
    assert output.status == 1
    assert "denied the request" in output.err
    assert [piece for piece in example.says if piece not in output.err] == []
    assert site.cluster.kubectl("get", "-f", str(EXAMPLES / example.manifest)).status == 1
    assert site.hook.reservations() == []


@each([row for row in LET_IN if row.says])
def test_warnings_are_printed_by_kubectl(site: Site, example: Example) -> None:
    """A queued gang, or a request without effect, is let in with a line that says so."""
    output = site.apply(EXAMPLES / example.manifest)
    assert output.status == 0
    assert [piece for piece in example.says if piece not in " ".join(output.warnings)] == []


@each(LET_IN)
def test_applying_the_same_manifest_again_changes_nothing(site: Site, example: Example) -> None:
    """The second `kubectl apply` leaves object and reservation as they were.

    kubectl itself may say "configured": it sends `nvidia.com/gpu: 8` again because "8" is stored.
    """
    first = site.apply(EXAMPLES / example.manifest, "-o", "yaml")
    held = {
        (reservation.id, reservation.domains, reservation.assignments)
        for reservation in site.hook.reservations()
    }
    again = site.apply(EXAMPLES / example.manifest, "-o", "yaml")
    assert again.status == 0, again.err
    assert [content(obj) for obj in again.objects] == [content(obj) for obj in first.objects]
    now = {
        (reservation.id, reservation.domains, reservation.assignments)
        for reservation in site.hook.reservations()
    }
    assert held <= now
    assert held == now or example.manifest.startswith(BY_POD), "nothing more is held"


@each(LET_IN)
def test_storing_again_what_is_stored_changes_nothing(site: Site, example: Example) -> None:
    """An update with the stored object itself passes both webhooks, and the object keeps its generation."""
    site.apply(EXAMPLES / example.manifest)
    before = site.cluster.kubectl("get", "-f", str(EXAMPLES / example.manifest), "-o", "yaml")
    whatever = re.sub('^ *resourceVersion: "[0-9]+"$', "", before.out, flags=re.MULTILINE)
    replaced = site.cluster.kubectl("replace", "-f", "-", "-o", "yaml", text=whatever)
    while "(Conflict)" in replaced.err:  # the Job's controller has written its status between two calls
        replaced = site.cluster.kubectl("replace", "-f", "-", "-o", "yaml", text=whatever)
    assert replaced.status == 0, replaced.err
    assert [content(obj) for obj in replaced.objects] == [content(obj) for obj in before.objects]


@each(ADMITTED)
def test_deleting_the_workload_gives_the_place_back(site: Site, example: Example) -> None:
    """`kubectl delete -f` leaves no reservation behind."""
    site.apply(EXAMPLES / example.manifest)
    output = site.cluster.kubectl("delete", "-f", str(EXAMPLES / example.manifest), "--timeout=60s")
    assert output.status == 0, output.err
    wait_until(lambda: not site.pods(), "the pods to go")
    assert [reservation.gang for reservation in site.hook.reservations()] == []
