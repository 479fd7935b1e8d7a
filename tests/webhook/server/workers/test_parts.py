"""The pure parts: long lists that change little, the cores that are given, and whole messages."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from webhook.server.workers import link as links
from webhook.server.workers.cores import given_cores
from webhook.server.workers.link import LinkLost, WorkerLink


@pytest.mark.parametrize(
    ("file", "text", "cores"),
    [
        ("cpu.max", "100000 100000\n", 1),
        ("cpu.max", "50000 100000\n", 1),
        ("cpu.max", "250000 100000\n", 2),
        ("cpu.max", "max 100000\n", None),
        ("cpu.max", "odd", None),
        ("other", "", None),
    ],
)
def test_the_cores_of_a_control_group(
    file: str, text: str, cores: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole ones, at least one, and no more than the affinity gives."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    (tmp_path / file).write_text(text)
    assert given_cores(tmp_path) == (cores or 8)


@pytest.mark.parametrize(("quota", "cores"), [("300000", 3), ("-1", 8)])
def test_the_cores_of_an_older_control_group(
    quota: str, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 1 has two files."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text(quota)
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000")
    assert given_cores(tmp_path) == cores


def test_an_affinity_counts_below_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process may use two cores of a limit of four."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    (tmp_path / "cpu.max").write_text("400000 100000")
    assert given_cores(tmp_path) == 2


def test_a_message_of_any_size_arrives_whole() -> None:
    """Small ones in a row, each for itself."""
    first, second = map(WorkerLink, socket.socketpair())
    for message in ("a", {"b": [1, None]}, b""):
        first.send(message)
    assert [second.receive() for _ in range(3)] == ["a", {"b": [1, None]}, b""]
    assert not second.has_message(0)


def test_the_end_of_the_other_process_is_told() -> None:
    """Be it before a message or in the middle of one, or before one is sent."""
    for begun in (b"", b"\0\0"):
        end, other = socket.socketpair()
        end.sendall(begun)
        end.close()
        link = WorkerLink(other)
        assert link.has_message(0)
        with pytest.raises(LinkLost):
            link.receive()
        with pytest.raises(LinkLost):
            link.send("nobody is there")


def test_a_message_that_stops_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender that stops in the middle blocks nobody."""
    monkeypatch.setattr(links, "STALLED_SECONDS", 0.01)
    end, other = socket.socketpair()
    end.sendall(b"\0\0")
    with pytest.raises(LinkLost):
        WorkerLink(other).receive()
