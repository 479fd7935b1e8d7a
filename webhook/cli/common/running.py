"""What would become of everything that runs in a cluster, each object by itself: `report --kubeconfig`.

An object is judged as if it were applied anew on the cluster without its own pods and what its gangs hold:
it runs already, so that its own place is no reason to wait.
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
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings
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
"""How often the progress is told where standard error is no terminal."""


async def report_running(
    kubeconfig: str, policies: PolicySet, namespace: str = "", settings: Settings = DEFAULT_SETTINGS
) -> Report:
    """The report on all namespaces, or on one. `settings` serve where the cluster says nothing. Raises
    `InputError` for a cluster that cannot be read.

    What only passes is counted as unchanged, and not told: of ten thousand objects it would be a gigabyte.
    """
    if not sys.stderr.isatty():
        inputs.note("reading the cluster")
    quiet()
    async with running_cluster(kubeconfig, policies, time.time(), namespace, settings) as cluster:
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
    """Those of the cluster, or where it has none, as before the installation, those that it would have."""
    if cluster.webhooks and cluster.webhooks.get("webhooks"):
        return webhooks_from(cluster.webhooks, WEBHOOKS)
    configuration = objects([str(inputs.shipped("manifests") / "70-webhooks.yaml")])[0]
    return webhooks_from(configuration.value, configuration.file)


def _judged(
    obj: RunningObject, cluster: RunningCluster, policies: PolicySet, webhooks: PolicySet
) -> tuple[str, Decision | None]:
    """apiVersion, and what would be decided on CREATE; None for an object that no webhook is asked about."""
    document, around = obj.manifest(), cluster.environment
    namespace = namespace_of(obj.name)
    request = around.with_namespace(from_object(document, uid=obj.name, namespace=namespace))
    version = str(document["apiVersion"])
    if around.mode(request).mode != "off" and not asks_about(webhooks, request):
        return version, None
    try:
        workload = read(document, namespace=namespace, podgroups=around.podgroups)
        gangs = [group.name for group in workload.gangs]
    except InputError:
        gangs = []  # `decide` says what is wrong with it
    return version, decide(request, policies, cluster.without(obj, gangs), "mutate", around)


@dataclass(slots=True)
class _KeptResults:
    """What is kept of each decision; texts that many objects share are kept once. `not_asked`: how many
    objects are nothing to Bayplan."""

    results: list[Result] = field(default_factory=list)
    fates: list[tuple[str, Fate]] = field(default_factory=list)
    not_asked: int = 0
    _texts: dict[str, str] = field(default_factory=dict)

    def add(self, obj: RunningObject, judged: tuple[str, Decision | None]) -> None:
        """One object's results and fate."""
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
    """Numbers without end; each that is taken is told on standard error as one object that is done."""
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
