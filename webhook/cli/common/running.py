"""Evaluates every workload of a live cluster on its own, for `report --kubeconfig`.

Each object is evaluated as if it were newly applied, to a cluster without the pods and reservations of
this object. Otherwise a running workload would have to wait for the place that it occupies itself.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from planner.model.errors import InputError
from planner.model.names import namespace_of
from planner.model.words import counted
from webhook.admission.configuration.parameters import read_parameters
from webhook.admission.configuration.settings import Settings
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.cli.common import inputs
from webhook.cli.common.standing_words import quiet
from webhook.files.reader import objects
from webhook.kube.running import WEBHOOKS, RunningCluster, RunningObject, running_cluster
from webhook.policy.loading.webhooks import asks_about, webhooks_from
from webhook.policy.model.policy import PolicySet
from webhook.report import terminal
from webhook.report.collect import Subject, results
from webhook.report.model import MUTATION, Fate, Report, Result
from webhook.wire.request import from_object
from webhook.workloads import read

LINE_SECONDS = 10.0
"""Seconds between lines of progress if standard error is not a terminal."""


async def report_running(kubeconfig: str, policies: PolicySet, namespace: str, settings: Settings) -> Report:
    """Returns the report on the workloads of all namespaces, or of one.

    `settings`: those in force if the cluster sets none. Results of policies that pass without a change are
    dropped: for ten thousand objects, they would take a gigabyte of memory. Objects about which no webhook
    is called count as unchanged. Raises `InputError` for a cluster that cannot be read.
    """
    if not sys.stderr.isatty():
        inputs.note("reading the cluster")
    quiet()
    async with running_cluster(kubeconfig, policies, namespace, settings) as cluster:
        inputs.note_unread(cluster.unread)
        for problem in read_parameters(policies, cluster.environment.configured)[1]:
            inputs.note(f"left out: {problem}")
        webhooks = _webhooks(cluster)
        judged = _KeptResults()
        with _progress(len(cluster.objects)) as steps:
            for obj, _ in zip(cluster.objects, steps, strict=False):
                judged.add(obj, _judged(obj, cluster, policies, webhooks))
    if judged.not_asked:
        share = f"{judged.not_asked} of {counted(len(cluster.objects), 'object')}"
        inputs.note(f"{share} count as unchanged, because no webhook is asked about them")
    return Report(tuple(judged.results), policies.revision, fates=tuple(judged.fates))


def _webhooks(cluster: RunningCluster) -> PolicySet:
    """Returns the webhooks of the cluster's webhook configuration, or of the configuration that ships with
    Bayplan if the cluster has none. They decide for which objects the API server would call Bayplan.
    """
    if cluster.webhooks and cluster.webhooks.get("webhooks"):
        return webhooks_from(cluster.webhooks, WEBHOOKS)
    configuration = objects([str(inputs.shipped("manifests") / "70-webhooks.yaml")])[0]
    return webhooks_from(configuration.value, configuration.file)


def _judged(
    obj: RunningObject, cluster: RunningCluster, policies: PolicySet, webhooks: PolicySet
) -> tuple[str, Decision | None]:
    """Returns the object's apiVersion, and the decision on its creation; None for the decision if the
    webhooks' match conditions exclude the object.
    """
    document, environment = obj.manifest(), cluster.environment
    namespace = namespace_of(obj.name)
    request = environment.with_namespace(from_object(document, uid=obj.name, namespace=namespace))
    version = str(document["apiVersion"])
    if environment.mode(request).mode != "off" and not asks_about(webhooks, request):
        return version, None
    try:
        workload = read(document, namespace=namespace, podgroups=environment.podgroups)
        gangs = [group.name for group in workload.gangs]
    except InputError:
        gangs = []  # `decide` reports the error
    return version, decide(request, policies, cluster.without(obj, gangs), "mutate", environment)


@dataclass(slots=True)
class _KeptResults:
    """The results of decisions, as far as the report needs them. Objects with the same message share one
    string, to save memory. `not_asked`: the number of objects that match no webhook.
    """

    results: list[Result] = field(default_factory=list)
    fates: list[tuple[str, Fate]] = field(default_factory=list)
    not_asked: int = 0
    _texts: dict[str, str] = field(default_factory=dict)

    def add(self, obj: RunningObject, judged: tuple[str, Decision | None]) -> None:
        """Adds the results and the fate of one object; nothing if its namespace has mode `off`."""
        version, decision = judged
        if decision is None:
            self.not_asked += 1
            self.fates.append((sys.intern(namespace_of(obj.name)), "unchanged"))
            return
        if decision.mode == "off":
            return
        self.fates.append((sys.intern(namespace_of(obj.name)), decision.outcome))
        for result in results([Subject(obj.name, version, "", 0, "", decision)]):
            if result.result != "pass" or result.rule == MUTATION or result.source == "plan":
                message = self._texts.setdefault(result.message, result.message)
                self.results.append(replace(result, message=message))


@contextmanager
def _progress(total: int) -> Iterator[Iterable[int]]:
    """A context that yields an iterable of `total` numbers. Each number that is taken from it advances the
    progress on standard error by one object.
    """
    if not sys.stderr.isatty():
        yield _lines(total)
        return
    columns = (TextColumn("judging"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal.console(sys.stderr), transient=True) as bar:
        yield bar.track(range(total))


def _lines(total: int) -> Iterator[int]:
    last_note = time.monotonic()
    for done in range(total):
        yield done
        if time.monotonic() - last_note > LINE_SECONDS:
            last_note = time.monotonic()
            inputs.note(f"judged {done} of {total} objects")
