"""Connects the journal of `bayplan serve --journal` with the webhook."""

from __future__ import annotations

from pathlib import Path

from planner.model.errors import InputError, Where
from webhook.admission.decision_record import Decision, Phase
from webhook.journal.writer import JournalWriter
from webhook.server.http import Webhook
from webhook.wire.request import AdmissionRequest

MIB = 2**20


def keep_journal(folder: Path | None, mebibytes: int, webhook: Webhook) -> JournalWriter | None:
    """Starts a journal of at most `mebibytes` MiB that records the webhook's decisions; returns None if
    `folder` is None.

    The caller must close the journal after the webhook has stopped. The webhook's earlier observer is still
    called, too. Raises `InputError` if the folder cannot be written.
    """
    if folder is None:
        return None
    journal, observer = JournalWriter(folder, mebibytes * MIB), webhook.observer
    try:
        journal.start()
    except OSError as error:
        raise InputError(f"no journal: {error.strerror or error}", Where(f"{folder}")) from None

    def tell(phase: Phase, request: AdmissionRequest, decision: Decision) -> None:
        observer(phase, request, decision)
        journal.record(phase, request, decision)

    webhook.observer = tell
    webhook.metrics.registry.register(journal.dropped)
    webhook.folders = {**webhook.folders, "journal": folder}
    return journal
