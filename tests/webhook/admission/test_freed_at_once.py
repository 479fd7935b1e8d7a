"""What a decision has worked out is freed when it ends, without the cycle collector.

The collector skips objects that were alive at an earlier full collection (`garbage_collection`). Of a cycle
among them, not even that much would ever be freed: with it a whole cluster of some moment would stay.
"""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Iterator

import pytest

from tests.webhook.calls import clusters, example, request_of
from webhook.admission.decision import decide
from webhook.admission.decision_record import Phase
from webhook.cli.common.inputs import policy_store

POLICIES = policy_store(()).current
CLUSTER = clusters("nvl72-8racks")
EXAMPLES = (
    "job-six-nodes-one-rack",
    "jobset-64-gpus",
    "job-76-gpus-one-rack",
    "job-without-resources",
)
CONTRADICTION = "job-of-no-known-level"


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("phase", ["mutate", "validate"])
@pytest.mark.parametrize("name", [*EXAMPLES, CONTRADICTION])
def test_no_snapshot_outlives_the_decision_on_it(name: str, phase: Phase) -> None:
    """Neither of an admitted gang nor of one that is queued or refused, whatever its policies read."""
    obj = copy.deepcopy(example(EXAMPLES[0] if name == CONTRADICTION else name))
    if name == CONTRADICTION:
        obj["spec"]["template"].setdefault("metadata", {})["annotations"] = {
            "bayplan.dev/required": "nowhere"
        }
    whole = CLUSTER.snapshot()
    assert whole is not None
    cluster = whole.evolve(changed_nodes=frozenset())
    seen = weakref.ref(cluster)
    decide(request_of(obj), POLICIES, cluster, phase, CLUSTER.environment())
    del cluster
    assert seen() is None
