"""Connections that never become calls, against one replica, beside an honest caller.

As with the noisy neighbour, the attack never ends: by turns it is on another replica and on this one.
"""

from __future__ import annotations

from tests.attack import calls
from tests.attack.table import Line, p99
from tests.e2e.replicas import Replicas

CONNECTIONS = 2_000
TURNS, SECONDS = 3, 6.0
"""Of each sort, and how long each is: some 300 honest calls of either sort."""
KINDS: tuple[calls.Hostile, ...] = ("idle", "no handshake", "endless body")


def siege(replicas: Replicas, memory: float, slower: float) -> list[Line]:
    """A line for each kind of connection; `memory` in MiB."""
    return [_besieged(replicas, how, memory, slower) for how in KINDS]


def _besieged(replicas: Replicas, how: calls.Hostile, memory: float, slower: float) -> Line:
    port, other = replicas.ports[:2]
    pid = replicas.processes[0].popen.pid
    quiet: list[float] = []
    loud: list[float] = []
    failed, peak = 0, 0.0
    for _ in range(TURNS):
        for target, took in ((other, quiet), (port, loud)):
            seconds, lost, largest = calls.besieged(
                port, target, how, CONNECTIONS, SECONDS, lambda: calls.resident(pid)
            )
            took.extend(seconds)
            failed, peak = failed + lost, max(peak, largest)
    ratio = p99(loud) / p99(quiet)
    seen = f"p99 {1000 * p99(quiet):.0f} ms quiet, {1000 * p99(loud):.0f} ms: {ratio:.2f} ×"
    return Line(
        f"{CONNECTIONS} connections: {how}",
        f"below {memory:g} MiB, p99 below {slower:g} × quiet",
        f"{peak:.0f} MiB; {seen}; {failed} of {len(quiet) + len(loud)} failed",
        peak < memory and not failed and ratio < slower,
    )
