"""The processes in which `bayplan serve --workers` decides, as parts of the service."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from webhook.server.http import Webhook
from webhook.server.seats import Seats
from webhook.server.service import deciding_threads
from webhook.server.workers.cores import given_cores
from webhook.server.workers.pool import Pool

MOST_WORKERS = 4
"""Workers for `cores`, on however many: HTTP and the sending take the serving process 3 ms of a call, a
decision takes a worker 12, so more than four would wait for it."""

CORES = "cores"

SPARE = 1
"""Workers beside those, so that who comes beside somebody's storm finds one idle: of all seats the fair queue
keeps one from the flow that has the others. It is started when it is needed."""


def worker_count(text: str) -> int:
    """A number of workers, or of the cores that this process is given, within bounds."""
    if text == CORES:
        return min(MOST_WORKERS, given_cores())
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 1 to 64 nor {CORES}")
    return int(text)


@dataclass(frozen=True, slots=True)
class DecidingProcesses:
    """`parts`: arguments of `Service`; none where the serving process decides itself."""

    pool: Pool | None = None
    parts: dict[str, Any] = field(default_factory=dict)

    def told_by(self, webhook: Webhook) -> Webhook:
        """The webhook, whose metrics and readiness tell of them."""
        if self.pool is not None:
            for metric in (self.pool.starts, self.pool.workers):
                webhook.metrics.registry.register(metric)
            webhook.workers_problem = lambda: self.pool.problem if self.pool else ""
        return webhook


@contextmanager
def deciding_processes(workers: int) -> Iterator[DecidingProcesses]:
    """So many at once for one flow of calls; with one the serving process decides itself."""
    if workers == 1:
        yield DecidingProcesses()
        return
    count = workers + SPARE
    pool = Pool(count)
    try:
        threads = deciding_threads(count)
        parts = {"decider": pool.decide, "threads": threads, "seats": Seats(count)}
        yield DecidingProcesses(pool, parts)
    finally:
        pool.close()
