"""Every example ends as it says: planned as `bayplan plan` would, and decided as the webhook would."""

from __future__ import annotations

from functools import cache

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.errors import Where
from tests.manifests.examples import EXAMPLES, README, Example, examples, text
from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.cli.decisions.plan import plan_each
from webhook.files.reader import documents, objects
from webhook.policy.engine.device_selectors import read_cluster
from webhook.policy.functions.table import FUNCTIONS
from webhook.policy.loading.files import load_paths
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import from_object
from webhook.workloads import read, wants_plan

ALL = examples()


@cache
def cluster(names: tuple[str, ...]) -> Snapshot:
    files = [str(EXAMPLES / "clusters" / name) for name in names]
    return read_cluster((document.file, document.value) for document in documents(files))


@cache
def policies() -> PolicySet:
    return load_paths([str(EXAMPLES.parents[1] / "policies")], functions=FUNCTIONS)


def name(example: Example) -> str:
    return f"{example.manifest} on {' and '.join(example.clusters)}"


@pytest.mark.parametrize("example", [example for example in ALL if example.decisions], ids=name)
def test_the_plan_decides_as_the_example_says(example: Example) -> None:
    """Admitted, queued or rejected, gang by gang, and placed where it says; a no has its reason."""
    documents = objects([str(EXAMPLES / example.manifest)])
    answers = [
        planned.answer for planned in plan_each(cluster(example.clusters), documents, None, Environment())
    ]
    assert tuple(answer.decision for answer in answers) == example.decisions
    assert all(answer.reason and answer.message for answer in answers if answer.decision != "admitted")
    places = ["/".join(answer.domain) for answer in answers if answer.decision == "admitted"]
    assert len(places) == len(example.places)
    assert all(
        f"{domain}/".startswith(f"{place}/") for domain, place in zip(places, example.places, strict=True)
    )


@pytest.mark.parametrize("example", ALL, ids=name)
def test_admission_refuses_what_can_never_run_and_nothing_else(example: Example) -> None:
    """A refusal comes with words; what is admitted or queued is let in with its plan written on it."""
    for document in objects([str(EXAMPLES / example.manifest)]):
        request = from_object(document.value, uid="1")
        decision = decide(request, policies(), cluster(example.clusters), "mutate")
        planned = wants_plan(read(document.value))
        assert decision.response.allowed is not example.refused, decision.response.message
        assert bool(decision.response.message) is example.refused
        assert bool(decision.response.patch) is (planned and not example.refused)
        words = " ".join((decision.response.message, *decision.response.warnings))
        assert [piece for piece in example.says if piece not in words] == []


def test_every_example_is_expected_and_says_so() -> None:
    """Each manifest stands in expected.yaml, and opens with a comment."""
    files = {path.name for path in EXAMPLES.glob("*.yaml")}
    assert files == {example.manifest for example in ALL}
    assert all((EXAMPLES / file).read_text().startswith("# ") for file in files)


def test_every_example_asks_for_a_plan() -> None:
    """None would pass the webhook by."""
    for example in ALL:
        documents = objects([str(EXAMPLES / example.manifest)])
        assert any(wants_plan(read(document.value, where=Where(document.file))) for document in documents)


def test_the_table_is_what_is_expected() -> None:
    """The README's table is written from expected.yaml."""
    assert README.read_text() == text()


@pytest.mark.parametrize("example", [example for example in ALL if not example.refused], ids=name)
def test_a_second_look_changes_nothing(example: Example) -> None:
    """What the webhook stored, sent again, gets an empty patch."""
    for document in objects([str(EXAMPLES / example.manifest)]):
        picture = cluster(example.clusters)
        first = decide(from_object(document.value, uid="1"), policies(), picture, "mutate")
        again = decide(from_object(dict(first.object or {}), uid="2"), policies(), picture, "mutate")
        assert list(again.response.patch) == []
