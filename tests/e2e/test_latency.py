"""The time that the webhook adds to the admission of a pod, as the API server and its client see it, in one
run.
"""

from __future__ import annotations

import re
import statistics
import time

import pytest

from tests.e2e.api import Json
from tests.e2e.processes import wait_until
from tests.e2e.stage import Site
from tests.manifests.examples import EXAMPLES

pytestmark = pytest.mark.usefixtures("clean")
PODS = 60
PATH = "/api/v1/namespaces/research/pods"
METRIC = "apiserver_admission_webhook_admission_duration_seconds"


def test_the_admission_of_a_gangs_pod_takes_little_longer_with_the_webhook(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """60 pods of a planned gang each way; a call, by the API server's own metric, takes under 250 ms."""
    template = gang_template(site)
    seen = calls(site)
    hooked = create(site, template, "hooked")
    count, seconds = (after - before for after, before in zip(calls(site), seen, strict=True))
    site.hook.unconfigure()
    bare = create(site, template, "bare")
    site.hook.configure()
    mean = seconds / count
    with capsys.disabled():
        print(f"\npod admission, {PODS} pods: with the webhook {words(hooked)}; without {words(bare)};")
        print(f"by the API server: {count:.0f} calls of {1000 * mean:.1f} ms on average")
    assert count == 2 * PODS, "each pod was shown to both webhooks"
    assert mean < 0.25


def gang_template(site: Site) -> Json:
    """The pod template of an admitted Job in namespace research."""
    manifest = EXAMPLES / "job-two-nodes-one-rack.yaml"
    stored = site.apply(manifest, "-o", "yaml").object
    wait_until(lambda: len(site.pods()) == 2, "the Job controller to make its pods")
    return dict(stored["spec"]["template"])


def create(site: Site, template: Json, prefix: str) -> list[float]:
    """Seconds for each POST of a pod. No scheduler runs for the pods."""
    times = []
    for index in range(PODS):
        metadata = {"annotations": template["metadata"]["annotations"], "name": f"{prefix}-{index}"}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        started = time.perf_counter()
        site.cluster.api.create(PATH, body)
        times.append(time.perf_counter() - started)
    return times


def calls(site: Site) -> tuple[float, float]:
    """The number of calls that the API server made for pods, and the seconds that they took together."""
    text = site.cluster.api.get("/metrics")["text"]
    return total(text, "count"), total(text, "sum")


def total(text: str, part: str) -> float:
    """The sum of a part of the metric over both phases."""
    pattern = rf'^{METRIC}_{part}{{[^}}]*name="pods.bayplan.dev"[^}}]*}} (\S+)$'
    return sum(float(value) for value in re.findall(pattern, text, re.MULTILINE))


def words(times: list[float]) -> str:
    """Median and 95th percentile in milliseconds, as text."""
    ordered = sorted(times)
    high = ordered[int(0.95 * len(ordered))]
    return f"median {1000 * statistics.median(times):.1f} ms, p95 {1000 * high:.1f} ms"
