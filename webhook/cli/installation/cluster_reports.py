"""Passes the decisions of `serve` to the writer of the cluster's Reports (openreports.io)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from planner.model.words import shortened
from webhook.admission.decision_record import Decision, Phase
from webhook.admission.updates.unchanged import asks_for_pods
from webhook.kube.reports import ReportForm, ReportWriter
from webhook.kube.runtime import ClusterRuntime
from webhook.report.in_cluster import NAME, DecisionNews, decision_news, merged, objects_in
from webhook.server.cluster_source import controller_of
from webhook.server.decision_log import LONGEST_NAME
from webhook.wire.request import AdmissionRequest


def report_writer(side: ClusterRuntime, revision: Callable[[], str]) -> ReportWriter[DecisionNews]:
    """Returns the writer of the Reports in this cluster. `revision`: returns the revision of the current
    policies.
    """
    form = ReportForm(
        NAME,
        lambda document, namespace, news: merged(document, namespace, news, revision()),
        objects_in,
        partial(DecisionNews, gone=True),
    )
    return ReportWriter(side.api, form, side.has)


def record(
    writer: ReportWriter[DecisionNews],
    side: ClusterRuntime,
    phase: Phase,
    request: AdmissionRequest,
    decision: Decision,
) -> None:
    """Queues a decision for the Reports if the call is a mutating one, because only that call has the
    object as the user sent it.

    Dry runs and subresources are not recorded. The decision on an object with a controller is recorded for
    its topmost owner, which is the object that a user can change.
    """
    obj = request.object
    if phase != "mutate" or request.dry_run or request.sub_resource or obj is None or writer.absent:
        return
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping):  # refused, and without a name that a Report could refer to
        return
    owner = controller_of(request)
    name = request.name or metadata.get("name") or metadata.get("generateName") or ""
    version = request.kind.api_version
    # The API server checks names after admission, and news may wait for seconds: none is as long as a body.
    full = f"{request.namespace}/{request.kind.kind}/{shortened(str(name), LONGEST_NAME)}"
    writer.put(
        decision_news(
            full,
            version,
            decision,
            time.time(),
            anew=asks_for_pods(request),
            pods_of=side.topmost(owner) if owner else "",
        )
    )
