"""The metrics of the leaf-spine scheduler under its names."""

from __future__ import annotations

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from tests.webhook.calls import example
from webhook.kube.controller.recovery_metrics import recovery_histogram
from webhook.policy import PolicySet
from webhook.server.metrics import metrics
from webhook.server.standing_metrics import Standing


async def scraped(asked):
    """Every sample by name and labels."""
    text = await (await asked.client.get("/metrics")).text()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(name, rack):
    return (name, ("domain", f"su-1/{rack}"), ("topology", "superpod"))


async def test_decisions_count_by_strategy_and_result(serve):
    """One placed, one that names a strategy, one that can never run."""
    wanting = example("job-six-nodes-one-rack")
    wanting["metadata"]["annotations"]["topology.scheduler/placement-strategy"] = "consolidated"
    async with serve("superpod-32") as asked:
        await asked.mutate(example("job-two-nodes-one-rack"))
        await asked.mutate(wanting)
        await asked.mutate(example("job-unknown-level"))
        scrape = await scraped(asked)
    name = "topology_placement_decisions_total"
    assert scrape[name, ("result", "success"), ("strategy", "balanced")] == 1
    assert scrape[name, ("result", "success"), ("strategy", "consolidated")] == 1
    assert scrape[name, ("result", "failure"), ("strategy", "balanced")] == 1


async def test_times_are_those_of_the_calls_that_planned(serve):
    """A placement is a part of its call, and below the promised half second."""
    async with serve("superpod-32") as asked:
        await asked.mutate(example("job-two-nodes-one-rack"))
        scrape = await scraped(asked)
    strategy = ("strategy", "balanced")
    call = scrape["topology_scheduler_latency_seconds_sum", strategy]
    placement = scrape["topology_scheduler_placement_duration_seconds_sum", strategy]
    assert 0 < placement < call < 5
    assert scrape["topology_scheduler_latency_seconds_count", strategy] == 1


async def test_gauges_tell_how_full_and_how_broken_up_each_domain_is(serve):
    """Rack 1 is half used, then two whole nodes more and held; rack 4 is used in parts."""
    async with serve("superpod-32") as asked:
        before = await scraped(asked)
        await asked.mutate(example("job-two-nodes-one-rack"))
        after = await scraped(asked)
    allocation, utilization = "topology_gpu_allocation_ratio", "topology_domain_utilization_ratio"
    assert (before[of(allocation, "rack-1")], before[of(utilization, "rack-1")]) == (0.5, 0.5)
    assert (after[of(allocation, "rack-1")], after[of(utilization, "rack-1")]) == (0.75, 1.0)
    fragmentation = "topology_scheduler_domain_fragmentation_ratio"
    assert before[of(fragmentation, "rack-4")] == 6 / 8
    assert before[of(fragmentation, "rack-3")] == 0


def test_the_controllers_recoveries_are_shown_where_it_works():
    """The leader's histogram is registered with the others."""
    shown, recoveries = metrics(), recovery_histogram()
    shown.registry.register(recoveries)
    recoveries.observe(0.2)
    text = shown.exposition(PolicySet(), {}, True, Standing(0)).decode()
    assert 'topology_scheduler_recovery_duration_seconds_bucket{le="30.0"} 1.0' in text


async def test_a_scrape_while_others_decide_is_answered(serve):
    """Both work on the same picture."""
    async with serve("superpod-32") as asked:
        calls = [asked.mutate(example("job-two-nodes-one-rack"), dry_run=True) for _ in range(4)]
        *_, scrape = await asyncio.gather(*calls, scraped(asked))
    assert scrape[of("topology_domain_utilization_ratio", "rack-3")] == 0
