"""Starts the worker processes of `bayplan serve --workers`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from webhook.server.http import Webhook
from webhook.server.permits import Permits
from webhook.server.rivals import Rivals
from webhook.server.service import deciding_threads
from webhook.server.workers.cores import given_cores
from webhook.server.workers.pool import Pool

MOST_WORKERS = 4
"""The maximum number of workers for `cores`. For each call, the serving process needs 3 ms for HTTP and a
worker 12 ms for the decision, so more than four workers would wait for the serving process.
"""

CORES = "cores"

SPARE = 1
"""The number of workers in addition to `--workers`. A user in a namespace (a *flow* of the fair queue) can
occupy all workers but one, so a burst of their calls does not delay other users. The worker starts when it
is first needed.
"""


def worker_count(text: str) -> int:
    """Parses a number of workers: from 1 to 64, or `cores` for the number of CPUs that this process may
    use, at most `MOST_WORKERS`. Raises `ArgumentTypeError`.
    """
    if text == CORES:
        return min(MOST_WORKERS, given_cores())
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 1 to 64 nor {CORES}")
    return int(text)


@dataclass(frozen=True, slots=True)
class DecidingProcesses:
    """The worker processes of a server, if it has any.

    `pool`: None if the serving process decides itself. `parts`: the arguments of `Service` that depend on the
    workers; empty if there are none.
    """

    pool: Pool | None = None
    parts: dict[str, Any] = field(default_factory=dict)

    def observed_by(self, webhook: Webhook) -> Webhook:
        """Adds the state of the workers to the webhook's metrics and readiness, and returns the webhook."""
        if self.pool is not None:
            for metric in (self.pool.starts, self.pool.workers):
                webhook.metrics.registry.register(metric)
            webhook.workers_problem = lambda: self.pool.problem if self.pool else ""
        return webhook


@contextmanager
def deciding_processes(workers: int) -> Iterator[DecidingProcesses]:
    """A context that yields a pool of `workers` and `SPARE` more processes, and ends them afterwards. Each
    starts when it is first needed. If `workers` is 1, there is no pool: the serving process decides itself.
    """
    if workers == 1:
        yield DecidingProcesses()
        return
    count = workers + SPARE
    pool = Pool(count)
    try:
        threads = deciding_threads(count)
        parts = {
            "decider": pool.decide,
            "threads": threads,
            "permits": Permits(count),
            "rivals": Rivals(count),
        }
        yield DecidingProcesses(pool, parts)
    finally:
        pool.close()
