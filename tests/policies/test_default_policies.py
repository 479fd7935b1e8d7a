"""The policies that ship: each on every kind of workload, alone and together, on and off."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from planner.cluster.snapshot import Snapshot
from tests.policies.helpers import (
    FOLDERS,
    POLICIES,
    Json,
    cluster,
    containers,
    mutate,
    policies,
    with_parameters,
)
from tests.webhook.workloads.objects import CRON_JOB, EVERY, GPU, JOB, LWS, POD, annotated, changed
from webhook.admission.configuration.setting_keys import SETTING_KEYS
from webhook.admission.decision import decide
from webhook.cel.libraries.quantity import canonical
from webhook.cli.decisions.test import run_case
from webhook.policy.functions.schedulers import PRESENT
from webhook.policy.testing.runner import Suite
from webhook.wire.request import from_object
from webhook.workloads import pod_of, read

PARAMETERS = yaml.safe_load((POLICIES / "parameters.yaml").read_text())
SCHEMA = json.loads((POLICIES / "parameters.schema.json").read_text())["properties"]["data"]
KINDS = [pytest.param(manifest, id=manifest["kind"]) for manifest in EVERY]


def test_every_case_passes_and_every_expression_is_reached() -> None:
    """`bayplan test policies/ --coverage` has nothing to say."""
    *_, (_, summary) = Suite.load([str(POLICIES)]).run(run_case, lambda: 0.0)
    assert [(result.case.name, result.differences) for result in summary.failed] == []
    assert summary.without_case == []
    assert summary.unreached == []


def failures(texts: Iterable[str]) -> list[str]:
    """Those that say that an expression of a policy could not be evaluated."""
    return [text for text in texts if re.search(r"policy '[\w-]+', spec\.", text)]


@pytest.mark.parametrize("where", ["no cluster", "superpod-32", "nvl72-8racks"])
@pytest.mark.parametrize("obj", KINDS)
def test_a_second_pass_changes_nothing(obj: Json, where: str) -> None:
    """What the policies made of an object of any kind needs nothing more, and none of them fails on it."""
    snapshot = None if where == "no cluster" else cluster(where)
    if where == "nvl72-8racks":  # a tray has four GPUs
        obj = json.loads(json.dumps(obj).replace(f'"{GPU}": 8', f'"{GPU}": 4'))
    first = mutate(obj, on=snapshot)
    assert first.response.allowed, first.response.message
    assert failures(first.response.warnings) == []
    second = mutate(dict(first.object or {}), on=snapshot)
    assert list(second.response.patch) == []


@pytest.mark.parametrize("obj", KINDS)
def test_a_misspelt_key_is_told_on_every_kind(obj: Json) -> None:
    """On the object itself: `key-spelling` names each kind about which the webhook is called."""
    outcome = mutate(annotated(obj, {"kai.scheduler/topology-required-placment": "rack"}))
    assert any("is not read by anyone" in warning for warning in outcome.response.warnings)


@pytest.mark.parametrize("where", ["nvl72-8racks", "mig-pool"])
@pytest.mark.parametrize("obj", KINDS)
def test_every_kind_gets_an_answer_in_words_on_every_cluster(obj: Json, where: str) -> None:
    """Let in and at rest after one pass, or refused with a reason; no policy fails on it."""
    first = mutate(obj, on=cluster(where))
    assert not [warning for warning in first.response.warnings if "expression" in warning]
    if first.response.allowed:
        assert list(mutate(dict(first.object or {}), on=cluster(where)).response.patch) == []
    else:
        assert "policy" in first.response.message or "never run" in first.response.message


def as_stored(amounts: Json | None) -> Json:
    """Amounts of resources as the API server stores them; these objects have numbers, as files do."""
    return {name: canonical(str(amount)) for name, amount in (amounts or {}).items()}


@pytest.mark.parametrize("obj", KINDS)
def test_gpu_pods_of_every_kind_are_guaranteed_and_go_to_the_gpu_scheduler(obj: Json) -> None:
    """Requests equal limits in cpu and memory, CPUs are whole; a Pod's requests default to its limits."""
    result = mutate(obj).object
    gpu_containers = [
        container for container in containers(result) if GPU in container["resources"]["limits"]
    ]
    assert gpu_containers
    for container in gpu_containers:
        limits, requests = (as_stored(container["resources"].get(name)) for name in ("limits", "requests"))
        if obj["kind"] != "Pod":
            assert requests == limits
        assert {**limits, **requests} == limits
        assert limits["cpu"].isdecimal()
        assert limits["memory"].endswith("Gi")
    assert "kai-scheduler" in json.dumps(result)


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(FOLDERS, 2)))
def test_two_folders_load_without_the_others(first: str, second: str) -> None:
    """Deleting folders leaves a set that works."""
    assert mutate(JOB, policies(first, second), cluster("superpod-32")).response.allowed


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_given_alone_works_on_its_defaults(folder: str) -> None:
    """Without parameters.yaml the same comes out as with it."""
    alone, with_params = policies(folder), replace(policies(folder), params=policies().params)
    for obj in (POD, JOB):
        on = cluster("superpod-32")
        assert mutate(obj, alone, on).response.patch == mutate(obj, with_params, on).response.patch
    assert folder in {policy.name for policy in alone.policies}


@pytest.mark.parametrize("off", ["false", False])
@pytest.mark.parametrize("folder", FOLDERS)
def test_each_policy_is_switched_off_alone(folder: str, off: Any) -> None:
    """Its parameter leaves out just the policies of its folder; an unquoted false does too."""
    own = {policy.name for policy in policies(folder).policies}
    without = with_parameters(**{f"{folder}.enabled": off})
    pair = annotated(JOB, {"bayplan.dev/gang": "pair"})
    changers = {effect.policy for effect in mutate(pair, on=cluster("superpod-32")).effects}
    left = {effect.policy for effect in mutate(pair, without, cluster("superpod-32")).effects}
    assert left == changers - own


def test_the_parameters_are_those_that_the_policies_read() -> None:
    """parameters.yaml, its schema and the expressions name the same keys."""
    texts = "\n".join(path.read_text() for path in POLICIES.glob("*/policy.yaml"))
    read = set(re.findall(r'\[\?"([a-z-]+\.[a-z-]+)"\]', texts))
    read.add(PRESENT)  # by the functions `schedulers.*`
    assert read == set(PARAMETERS["data"]) == set(SCHEMA["properties"]) - set(SETTING_KEYS)


@pytest.mark.parametrize("key", sorted(PARAMETERS["data"]))
def test_each_default_is_the_schemas_and_the_expressions(key: str) -> None:
    """The same default stands in the file, in the schema and in every expression that reads the key."""
    default, rule = PARAMETERS["data"][key], SCHEMA["properties"][key]
    assert rule["default"] == default
    assert default in rule.get("enum", [default])
    assert re.fullmatch(rule.get("pattern", ".*"), default)
    texts = "\n".join(path.read_text() for path in POLICIES.glob("*/policy.yaml"))
    assert set(re.findall(rf'\[\?"{re.escape(key)}"\]\s*\.orValue\("([^"]*)"\)', texts)) == (
        set() if key == PRESENT else {default}
    )


def test_a_cron_job_keeps_its_template_free_for_each_run() -> None:
    """Its Jobs are planned one by one, so no place is written into it."""
    assert "affinity" not in json.dumps(mutate(CRON_JOB, on=cluster("superpod-32")).object)


def test_an_update_of_a_job_leaves_its_template_alone() -> None:
    """The API server refuses a changed template, so an old Job stays as it is."""
    old = changed(JOB, ("metadata", "labels"), {"seen": "true"})
    request = from_object(old, "UPDATE", old_object=JOB, uid="uid")
    paths = [op["path"] for op in decide(request, policies(), None, "mutate").response.patch]
    assert not [path for path in paths if path.startswith("/spec")]


def held(obj: Json) -> tuple[Json, Snapshot]:
    """An object as the policies left it, and the cluster in which its gangs hold their places."""
    decision = mutate(obj, on=cluster("superpod-32"))
    assert decision.object is not None
    snapshot = cluster("superpod-32")
    for reservation in decision.plan.reservations if decision.plan else ():
        snapshot = snapshot.with_reservation(reservation)
    return dict(decision.object), snapshot


def pods_of(obj: Json) -> list[Json]:
    """A pod of each template, as its controller makes it."""
    owner = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": "demo",
        "uid": "u",
        "controller": True,
    }
    return [
        {**pod, "metadata": {**pod["metadata"], "generateName": "demo-", "ownerReferences": [owner]}}
        for pod in (pod_of(template, obj) for template in read(obj).templates)
    ]


@pytest.mark.parametrize("obj", [row for row in KINDS if row.values[0] is not POD])
def test_a_mended_template_needs_nothing_more_when_its_pods_arrive(obj: Json) -> None:
    """Pods of a gang come as they shall be; those that are planned one by one still get their own place."""
    mended, snapshot = held(obj)
    workload = read(mended)
    for pod in pods_of(mended):
        decision = mutate(pod, on=snapshot)
        assert decision.response.allowed, decision.response.message
        changers = {effect.policy for effect in decision.effects}
        assert changers <= (set() if workload.holds else {"node-affinity", "plan"})


def test_a_replica_that_waits_is_told_of_who_is_in_its_way_not_of_its_fellows_pin() -> None:
    """The template is pinned to the places of the replicas that have one; that keeps nobody away."""
    many = changed(LWS, ("spec", "replicas"), 9)
    decision = mutate(many, on=cluster("superpod-32"))
    waiting = [warning for warning in decision.response.warnings if "are each queued" in warning]
    assert waiting
    assert not [warning for warning in waiting if "node affinity" in warning]
