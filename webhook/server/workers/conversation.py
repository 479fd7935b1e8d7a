"""What the serving process sends to a worker for one decision, and how it answers the decision's
questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.persistent.sequence_delta import sequence_delta
from webhook.admission.configuration.parameters import NO_PARAMETERS, Parameters
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.server.workers.messages import EnvironmentReply, Question, Surroundings, Topic
from webhook.wire.request import AdmissionRequest


@dataclass(slots=True)
class Knowledge:
    """The data that a worker has received so far, apart from the cluster; only differences from it are sent.

    `sequences`: the last answer to each question that has a list as its answer.
    """

    parameters: Parameters = NO_PARAMETERS
    sequences: dict[Any, Sequence[Any]] = field(default_factory=dict)


def surroundings(request: AdmissionRequest, environment: Environment, knowledge: Knowledge) -> Surroundings:
    """Returns the part of the environment that is sent with a job, and records it in `knowledge`."""
    parameters = environment.parameters or NO_PARAMETERS
    namespace = environment.namespaces.get(request.namespace)
    news = None if parameters is knowledge.parameters else _without_memory(parameters)
    knowledge.parameters = parameters
    return Surroundings(
        namespaces={} if namespace is None else {request.namespace: namespace},
        settings={name: environment.settings(name) for name in {"", request.namespace}},
        parameters=news,
        pod_groups=len(environment.podgroups),
        members=environment.members,
        sharing=environment.sharing,
        fenced=environment.fenced,
        rivals=environment.rivals,
        now=environment.now,
    )


def _without_memory(parameters: Parameters) -> Parameters:
    """Returns the parameters with empty caches: other threads may modify these while they are sent."""
    return replace(parameters, _objects={}, _settings={})


def reply_to(question: Question, environment: Environment, knowledge: Knowledge) -> EnvironmentReply:
    """Returns the environment's answer to a question, or the error that the environment raised."""
    try:
        return EnvironmentReply(_ANSWERS[question.topic](environment, knowledge, question))
    except Exception as error:  # raised again in the worker, where the decision handles it
        return EnvironmentReply(error=error)


def _listed(now: Callable[[Environment, Question], Sequence[Any]]) -> Callable[..., Any]:
    """Returns a function that answers a question with the difference between the list that `now` returns and
    the one of the previous answer.
    """

    def answer(environment: Environment, knowledge: Knowledge, question: Question) -> Any:
        key, latest = (question.topic, *question.words), now(environment, question)
        delta = sequence_delta(knowledge.sequences.get(key, ()), latest)
        knowledge.sequences[key] = latest
        return delta

    return answer


_ANSWERS: Mapping[Topic, Callable[[Environment, Knowledge, Question], Any]] = {
    "settings": lambda environment, _, question: environment.settings(*question.words),
    "skips": lambda environment, _, question: environment.skips(*question.words),
    "members": lambda environment, _, question: tuple(environment.stored_members(*question.words)),
    "access": lambda environment, _, question: environment.access(question.words[0]).check(question.words[1]),
    "pod group": lambda environment, _, question: environment.podgroups.get(question.words),
    "pod groups": lambda environment, _, question: tuple(environment.podgroups),
    "waiting": _listed(lambda environment, _: environment.waiting()),
    "params": _listed(lambda environment, question: environment.params.objects(*question.words)),
}


def with_snapshot(
    decision: Decision, request: AdmissionRequest, snapshot: Snapshot | None, environment: Environment
) -> Decision:
    """Returns a worker's decision with the snapshot of its plan: the cluster with the plan's reservations."""
    plan = decision.plan
    if plan is None or snapshot is None:
        return decision
    planned = environment.settings(request.namespace).of(snapshot)
    for reservation in plan.reservations:
        planned = planned.with_reservation(reservation)
    return replace(decision, plan=replace(plan, snapshot=planned))
