"""`bayplan report`: each object by itself, or all together as `bayplan plan` plans them."""

import copy
import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webhook.calls import EXAMPLES
from tests.webhook.placement.test_gangs_across_objects import group, members
from webhook.cli.common import inputs
from webhook.cli.decisions.mutate import decide_all
from webhook.cli.decisions.plan import plan_each
from webhook.files.reader import Document

SUPERPOD = str(EXAMPLES / "clusters" / "superpod-32.yaml")
SIX_NODES = str(EXAMPLES / "job-six-nodes-one-rack.yaml")
EIGHT_NODES = str(EXAMPLES / "jobset-64-gpus.yaml")

TEMPLATES = tuple(
    next(iter(yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text())))
    for name in (
        "job-six-nodes-one-rack",
        "job-two-nodes-one-rack",
        "job-nvlink-domain",
        "jobset-64-gpus",
        "leaderworkerset-rack-each",
    )
)
SERVING = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"namespace": "research"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": TEMPLATES[0]["spec"]["template"]["spec"]},
    },
}


def decisions(text):
    """Object and the plan's decision, in a report as JSON."""
    rows = json.loads(text)["results"]
    return {row["object"]: row["properties"]["decision"] for row in rows if row["source"] == "plan"}


def test_each_object_is_judged_by_itself_unless_it_is_said_otherwise(run):
    """Both have room alone, together the second waits; and the report says which it is."""
    _, alone, _ = run("report", "-c", SUPERPOD, "-f", SIX_NODES, EIGHT_NODES, "-o", "json")
    _, together, _ = run("report", "-c", SUPERPOD, "-f", SIX_NODES, EIGHT_NODES, "-o", "json", "--together")
    assert list(decisions(alone).values()) == ["admitted", "admitted"]
    assert list(decisions(together).values()) == ["admitted", "queued"]
    assert json.loads(alone)["judged"] == "each"
    assert json.loads(together)["judged"] == "together"


@pytest.mark.parametrize("option", [(), ("--together",)])
def test_replicas_of_a_deployment_that_have_no_room_beside_the_others_are_told(option, run, tmp_path):
    """Of twenty pods of a whole node each sixteen have room: four wait, as `bayplan plan` says."""
    serving = copy.deepcopy(SERVING)
    serving["metadata"]["name"] = "serve"
    serving["spec"]["replicas"] = 20
    (tmp_path / "serve.yaml").write_text(yaml.safe_dump(serving))
    _, out, _ = run("report", "-c", SUPERPOD, "-f", str(tmp_path), "-o", "json", *option)
    waiting = [row for row in json.loads(out)["results"] if row["properties"].get("decision") == "queued"]
    _, planned, _ = run("plan", "-c", SUPERPOD, "-f", str(tmp_path), "-o", "json")
    queued = [gang for gang in json.loads(planned)["gangs"] if gang["decision"] == "queued"]
    assert len(queued) == 4
    assert [row["message"].startswith("4 of 20 replicas, each: ") for row in waiting] == [True]


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
@pytest.mark.parametrize(("option", "words"), [((), "each by itself"), (("--together",), "as one apply")])
def test_people_are_told_how_it_was_judged(form, option, words, run):
    """In each format for them."""
    _, out, _ = run("report", "-c", SUPERPOD, "-f", SIX_NODES, "-o", form, *option)
    assert words in out


@pytest.mark.parametrize("with_it", [(), ("--kubeconfig", "x")])
def test_together_needs_a_cluster_and_manifests(with_it, run):
    """Exit status 2 and what to do."""
    inputs_words = with_it or ("-f", SIX_NODES)
    status, _, err = run("report", "--together", *inputs_words)
    assert status == 2
    assert "--together" in err


@pytest.fixture(scope="module")
def surroundings():
    """A cluster of four racks and the policies that ship."""

    class Arguments:
        cluster = (SUPERPOD,)
        mode = "enforce"

    snapshot, around = inputs.cluster_and_environment(Arguments())
    policies = inputs.policies(())
    return snapshot, inputs.in_force(around, policies), policies


OBJECTS = st.tuples(st.sampled_from([*TEMPLATES, SERVING]), st.integers(1, 9))


def folder(drawn):
    """The objects as documents, each with a name and a size of its own."""
    documents = []
    for place, (template, size) in enumerate(drawn):
        obj = copy.deepcopy(template)
        obj["metadata"]["name"] = f"gang-{place}"
        if obj["kind"] == "Job":
            obj["spec"] |= {"parallelism": size, "completions": size}
        elif obj["kind"] != "JobSet":
            obj["spec"]["replicas"] = size
        documents.append(Document(f"{place}.yaml", 0, obj))
    return documents


def shown(answers):
    """Gang, decision and domain of each."""
    return [(answer.gang, answer.decision, "/".join(filter(None, answer.domain))) for answer in answers]


@settings(max_examples=12, deadline=None)
@given(drawn=st.lists(OBJECTS, min_size=1, max_size=6), together=st.booleans())
def test_plan_and_report_agree_on_every_gang(surroundings, drawn, together):
    """Decision, domain and order, over random folders: together as planned together, else each as planned
    alone."""
    snapshot, around, policies = surroundings
    documents = folder(drawn)
    applies = [documents] if together else [[document] for document in documents]
    planned = [gang.answer for part in applies for gang in plan_each(snapshot, part, None, around)]
    outcomes = decide_all(policies, snapshot, documents, around, together=together, replicas=True)
    reported = [gang.answer for o in outcomes if o.decision.plan for gang in o.decision.plan.placed]
    assert shown(reported) == shown(planned)


@settings(max_examples=12, deadline=None)
@given(
    drawn=st.lists(OBJECTS, max_size=3),
    gang=members,
    scope=st.sampled_from(["", "rack"]),
    first=st.booleans(),
)
def test_plan_and_report_agree_on_a_gang_of_several_objects(surroundings, drawn, gang, scope, first):
    """Before or after others, in one apply: with its last member the gang is where it is planned."""
    snapshot, around, policies = surroundings
    whole = [group(sum(member.count for member in gang), scope)]
    whole += [obj for member in gang for obj in member.objects()]
    own = [Document("serve.yaml", place, obj) for place, obj in enumerate(whole)]
    documents = [*own, *folder(drawn)] if first else [*folder(drawn), *own]
    planned = [placed.answer for placed in plan_each(snapshot, documents, None, around)]
    outcomes = decide_all(policies, snapshot, documents, around, together=True, replicas=True)
    reported = [placed.answer for o in outcomes if o.decision.plan for placed in o.decision.plan.placed]
    assert {row[0]: row for row in shown(reported)} == {row[0]: row for row in shown(planned)}
