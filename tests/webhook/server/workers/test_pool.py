"""Decisions of real processes: the same as here, and an answer whatever becomes of a process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from tests.webhook.admission.test_growth_of_work import job_set
from tests.webhook.admission.test_stored_members import after, member
from tests.webhook.calls import EXAMPLES, clusters, example, request_of
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision, Phase
from webhook.admission.environment import Environment
from webhook.cel.libraries.authorizer import AccessDecision, Query
from webhook.cli.common.inputs import policy_store
from webhook.policy.loading.load import load
from webhook.policy.model.policy import CONFIG_MAP, ParamKind, PolicySet
from webhook.server.workers import pool as pools
from webhook.server.workers import process as processes
from webhook.server.workers.pool import Pool, WorkerFault
from webhook.wire.request import UserInfo

POLICIES = policy_store(()).current
SOURCE = clusters("superpod-32")
NOW = 1_000_000.0


@pytest.fixture
def pool() -> Iterator[Pool]:
    """One worker, which was forked after the first decision, and ends with the test."""
    new_pool = Pool(1)
    ask(new_pool)
    yield new_pool
    new_pool.close()


def environment(policies: PolicySet = POLICIES) -> Environment:
    """As the server has it: with parameters, and a clock."""
    return replace(SOURCE.environment().with_policy_parameters(policies), now=NOW)


def held(snapshot: Snapshot, decision: Decision) -> Snapshot:
    """The cluster with what a decision reserved."""
    for reservation in decision.plan.reservations if decision.plan is not None else ():
        snapshot = snapshot.with_reservation(reservation)
    return snapshot


def assert_same(decision: Decision, expected: Decision) -> None:
    """They do not differ in anything that anybody is told."""
    assert replace(decision, plan=None) == replace(expected, plan=None)
    assert (decision.plan is None) == (expected.plan is None)
    if decision.plan is not None and expected.plan is not None:
        assert decision.plan.placed == expected.plan.placed
        assert decision.plan.snapshot.reservations == expected.plan.snapshot.reservations
        assert decision.plan.snapshot.revision == expected.plan.snapshot.revision


def manifests() -> list[str]:
    """The names of all examples that hold one object."""
    return sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


@pytest.mark.parametrize("count", [1, 2])
def test_workers_answer_as_the_serving_process_does(count: int) -> None:
    """All examples, one after the other on a cluster that fills, both calls of each."""
    snapshot, asked = SOURCE.snapshot(), 0
    pool = Pool(count)
    ask(pool)
    try:
        for name in manifests():
            try:
                obj = example(name)
            except ValueError:  # several objects
                continue
            for phase in ("mutate", "validate"):
                request = request_of(obj, uid=name)
                arguments = (request, POLICIES, snapshot, phase, environment())
                decision, worked = pool.decide(*arguments)  # type: ignore[arg-type]
                expected = decide(*arguments)  # type: ignore[arg-type]
                assert_same(decision, expected)
                assert worked > 0
                asked += 1
                if phase == "mutate" and expected.response.allowed:
                    snapshot = held(snapshot, expected)
    finally:
        pool.close()
    assert asked > 20
    assert len(snapshot.reservations) > 3


class Recorded:
    """An environment that says what it was asked, and does `then` when it is first asked who waits."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.asked: list[object] = []
        self._then = then

    def environment(self) -> Environment:
        """As functions that are asked."""
        group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "spec": {"minMember": 2}}
        return replace(
            environment(),
            waiting=self.waiting,
            skips=self.skips,
            access=self.access,
            params=self,
            podgroups={("research", "pair"): group},
        )

    def waiting(self) -> tuple[Any, ...]:
        """Nobody."""
        self.asked.append("waiting")
        self._then()
        return ()

    def skips(self, owner: str) -> bool:
        """Nobody does."""
        self.asked.append(owner)
        return False

    def access(self, user: UserInfo) -> Recorded:
        """Who answers for a user."""
        self.asked.append(user.username)
        return self

    def check(self, query: Query) -> AccessDecision:
        """What is asked for in namespace `research` alone."""
        self.asked.append(query.verb)
        return AccessDecision(query.namespace == "research", "because")

    def objects(self, kind: ParamKind) -> list[dict[str, Any]]:
        """One ConfigMap."""
        self.asked.append(kind)
        data = {"apiVersion": kind.api_version, "kind": kind.kind, "data": {"limit": "3"}}
        return [{**data, "metadata": {"name": "limits", "namespace": "research"}}]


ASKING = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: asking}
spec:
  failurePolicy: Fail
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]
  validations:
    - expression: >-
        authorizer.group('').resource('pods').namespace(request.namespace).check('create').allowed()
        && params.data.limit == '4'
      messageExpression: "'the limit is ' + params.data.limit"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: asking}
spec: {policyName: asking, validationActions: [Deny], paramRef: {name: limits, namespace: research,
  parameterNotFoundAction: Deny}}
"""


def pod(**metadata: Any) -> dict[str, Any]:
    """A pod of one GPU."""
    container = {"name": "main", "image": "trainer:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "research", **metadata},
        "spec": {"containers": [container]},
    }


def test_what_a_decision_asks_for_is_answered_here(pool: Pool) -> None:
    """Permissions, parameters, the queue, owners and PodGroups are those of the serving process."""
    policies = load([("asking.yaml", ASKING)])
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    obj = pod(ownerReferences=[owner], annotations={"pod-group-name": "pair"})
    local, remote = Recorded(), Recorded()
    request = request_of(obj, uid="1")
    ask(pool, around=Recorded().environment(), policies=policies)
    for phase in ("mutate", "validate"):
        expected = decide(request, policies, SOURCE.snapshot(), phase, local.environment())  # type: ignore[arg-type]
        decision, _ = pool.decide(request, policies, SOURCE.snapshot(), phase, remote.environment())  # type: ignore[arg-type]
        assert_same(decision, expected)
        assert decision.response.message == "policy 'asking': the limit is 3"
    assert set(map(str, remote.asked)) == set(map(str, local.asked))
    assert {"waiting", "research/Job/j", "ann", "create", CONFIG_MAP} <= set(remote.asked)


def test_the_stored_members_of_a_gang_are_those_of_the_serving_process(pool: Pool) -> None:
    """A worker watches no pods, and refuses the last pod of a gang that can never run."""
    around = replace(environment(), stored_members=after(member(0)).stored_members)
    decision = ask(pool, member(1), around=around)
    assert_same(
        decision, decide(request_of(member(1), uid="1"), POLICIES, SOURCE.snapshot(), "mutate", around)
    )
    assert "which exists already" in decision.response.message
    assert ask(pool, member(1)).response.allowed


def test_what_the_environment_raises_is_raised_in_the_decision(pool: Pool) -> None:
    """There it is what it would be here: a fault in words where the engine makes one of it."""
    policies = load([("asking.yaml", ASKING)])

    class Broken(Recorded):
        def objects(self, kind: ParamKind) -> list[dict[str, Any]]:
            raise RuntimeError("no parameters today")

    ask(pool, around=Recorded().environment(), policies=policies)
    with pytest.raises(WorkerFault, match="no parameters today"):
        pool.decide(request_of(pod()), policies, SOURCE.snapshot(), "validate", Broken().environment())
    decision, _ = pool.decide(
        request_of(pod()), policies, SOURCE.snapshot(), "validate", Recorded().environment()
    )
    assert decision.response.message == "policy 'asking': the limit is 3"


def starts(pool: Pool) -> dict[str, int]:
    """How many were started, by why."""
    samples = [sample for metric in pool.starts.collect() for sample in metric.samples]
    return {s.labels["reason"]: int(s.value) for s in samples if s.name == "bayplan_worker_starts_total"}


def ask(
    pool: Pool,
    obj: dict[str, Any] | None = None,
    *,
    around: Environment | None = None,
    policies: PolicySet = POLICIES,
    snapshot: Snapshot | None = None,
    phase: Phase = "mutate",
) -> Decision:
    """One decision of the pool, which is the same as here."""
    request = request_of(obj or pod(), uid="1")
    seen = snapshot or SOURCE.snapshot()
    decision, _ = pool.decide(request, policies, seen, phase, around or environment(policies))
    return decision


def pid_of(pool: Pool) -> int:
    """The process of its worker."""
    (pid,) = pool.pids
    return pid


def test_a_worker_that_was_killed_is_replaced_and_nobody_is_told(pool: Pool) -> None:
    """While it was idle: the next decision is a new one's."""
    expected = ask(pool)
    os.kill(pid_of(pool), signal.SIGKILL)
    assert_same(ask(pool), expected)
    assert starts(pool) == {"asked": 1, "lost": 1}


def test_a_worker_that_is_killed_at_work_leaves_its_decision_to_a_new_one(pool: Pool) -> None:
    """In the middle of it: the answer is the same."""
    killed: list[int] = []

    def kill() -> None:
        if not killed:
            killed.append(pid_of(pool))
            os.kill(killed[0], signal.SIGKILL)

    expected = ask(pool)
    assert_same(ask(pool, around=replace(environment(), waiting=Recorded(kill).waiting)), expected)
    assert starts(pool) == {"asked": 1, "lost": 1}
    assert pid_of(pool) not in killed


def test_an_object_that_costs_two_workers_is_refused_in_words(pool: Pool) -> None:
    """The server goes on, and the next object is decided."""
    kill = Recorded(lambda: os.kill(pid_of(pool), signal.SIGKILL))
    decision = ask(pool, around=replace(environment(), waiting=kill.waiting))
    assert (decision.response.allowed, decision.response.code) == (False, 500)
    assert decision.response.message.startswith("2 processes in turn were killed or ended while they decided")
    assert ask(pool).response.allowed
    assert starts(pool) == {"asked": 2, "lost": 1}


def test_a_decision_that_is_over_ends_in_its_worker(pool: Pool) -> None:
    """The words are those of a decision here, and the worker goes on with the next."""
    ask(pool)
    pid, began = pid_of(pool), time.monotonic()
    over = replace(environment(), late=lambda: time.monotonic() - began > 0.05)
    decision = ask(pool, job_set(500), around=over)
    assert decision.late
    assert "took longer than one decision may. What would work:" in decision.response.message
    assert ask(pool).response.allowed
    assert pid_of(pool) == pid


def test_a_worker_that_is_stuck_is_killed(pool: Pool) -> None:
    """It does not answer when the decision is over: the call is answered in words, the next by a new one."""
    stopped: list[int] = []

    def stop() -> None:
        stopped.append(pid_of(pool))
        os.kill(stopped[0], signal.SIGSTOP)

    around = replace(environment(), waiting=Recorded(stop).waiting, late=lambda: bool(stopped))
    decision = ask(pool, around=around)
    assert decision.late
    assert ask(pool).response.allowed
    with pytest.raises(ProcessLookupError):
        os.kill(stopped[0], 0)


def test_a_call_that_finds_no_worker_in_time_is_over(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only one is at work for another call, for as long as this one may wait."""
    entered, leave = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        leave.wait(10)

    busy = replace(environment(), waiting=Recorded(wait).waiting)
    thread = threading.Thread(target=lambda: ask(pool, around=busy))
    thread.start()
    assert entered.wait(10)
    decision = ask(pool, around=replace(environment(), late=lambda: True))
    leave.set()
    thread.join()
    assert decision.late


def test_other_policies_are_decided_by_at_once(pool: Pool) -> None:
    """Here for the first time, then by a worker that was forked with them."""
    policies = load([("asking.yaml", ASKING)])
    around = replace(Recorded().environment(), parameters=environment(policies).parameters)
    for _ in range(2):
        decision = ask(pool, around=around, policies=policies, phase="validate")
        assert decision.response.message == "policy 'asking': the limit is 3"
    assert starts(pool) == {"asked": 1, "policies": 1}


def test_a_cluster_of_other_places_has_a_new_worker(pool: Pool) -> None:
    """Which is forked from a process that has just decided on it."""
    small = clusters("two-zones").snapshot()
    expected = decide(request_of(pod(), uid="1"), POLICIES, small, "mutate", environment())
    for _ in range(2):
        assert_same(ask(pool, snapshot=small), expected)
    assert starts(pool) == {"asked": 1, "cluster": 1}


def test_a_worker_is_renewed_after_many_changes(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It shares less of the picture with each."""
    monkeypatch.setattr(processes, "MOST_CHANGES", 2)
    snapshot = SOURCE.snapshot()
    for name in list(snapshot.nodes)[:5]:
        ask(pool, snapshot=snapshot)
        snapshot = snapshot.with_node(replace(snapshot.nodes[name], cordoned=True))
    ask(pool, snapshot=snapshot)
    assert starts(pool) == {"asked": 1, "changes": 1}


def test_where_no_process_can_be_had_the_server_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so for as long as it is so."""

    def refuse(snapshot: Snapshot | None) -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    pool = Pool(1)
    expected = decide(request_of(pod(), uid="1"), POLICIES, SOURCE.snapshot(), "mutate", environment())
    with monkeypatch.context() as patched:
        patched.setattr(processes, "_fork", refuse)
        for _ in range(2):
            assert_same(ask(pool), expected)
    assert "Resource temporarily unavailable" in pool.problem
    assert_same(ask(pool), expected)
    assert pool.problem == ""
    pool.close()


def test_an_object_that_cannot_be_sent_is_decided_here(pool: Pool) -> None:
    """It is nested more deeply than a message allows."""
    nested: Any = "x"
    for _ in range(100_000):
        nested = {"x": nested}
    request = replace(request_of(pod(), uid="1"), options=nested)
    decision, worked = pool.decide(request, POLICIES, SOURCE.snapshot(), "mutate", environment())
    assert decision.response.allowed
    assert worked == 0.0


def test_a_worker_has_nothing_of_the_server_but_its_link(pool: Pool) -> None:
    """No port that it would keep open, and no signal ends it before the server's calls have ended."""
    ask(pool)
    pid = pid_of(pool)
    links = {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir() if int(file.name) > 2}
    assert len(links) == 1
    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGINT)
    assert ask(pool).response.allowed
    assert pid_of(pool) == pid


def test_workers_end_with_their_pool() -> None:
    """No process is left, not even a zombie."""
    pool = Pool(2)
    ask(pool)
    pid = pid_of(pool)
    pool.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_fork_beside_threads_that_plan_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other threads hold at that moment: each of many workers, forked while two threads plan on the
    same cluster, answers its decision, and none is lost or killed for being stuck."""
    monkeypatch.setattr(pools, "ATTEMPTS", 1)
    snapshot, ended, answered = SOURCE.snapshot(), threading.Event(), 0
    group = request_of(example("job-two-nodes-one-rack"))

    def planning() -> None:
        moment = snapshot
        while not ended.is_set():  # in the lane of all threads that have none of their own, as a controller
            decide(group, POLICIES, moment, "mutate", environment())
            moment = moment.with_node(replace(next(iter(moment.nodes.values())), cordoned=False))

    threads = [threading.Thread(target=planning) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(12):
            pool = Pool(1)
            ask(pool, snapshot=snapshot)
            began = time.monotonic()
            around = replace(environment(), late=lambda began=began: time.monotonic() - began > 60)  # type: ignore[misc]
            answered += ask(pool, around=around, snapshot=snapshot).response.allowed
            pool.close()
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert answered == 12
