"""Reads entries from journals and audit logs in the order of their times, line by line.

Each file is read up to its first invalid line. A truncated file, or a file of another version, is reported
and does not affect other files.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from planner.model.errors import InputError, Where
from webhook.journal.audit_log import API_VERSION, AuditLog
from webhook.journal.entries import (
    HEAD,
    LINE_LIMIT,
    VERSION,
    JournalEntry,
    NotAnEntryError,
    as_json,
    entry_of,
)
from webhook.jsontools.depth import DEPTH_LIMIT, deeper_than

LINE_DEPTH = DEPTH_LIMIT + 8
"""Maximum nesting of a line: that of a request, which a line or an event holds a few levels below the top."""
SUFFIXES = (".jsonl", ".log", ".json")
"""The suffixes of the files that are read in a folder."""


@dataclass(slots=True)
class JournalReader:
    """Reads the files and folders at `paths`. `problems`: text for what could not be read; complete when
    `entries` has ended.
    """

    paths: Sequence[str]
    problems: list[str] = field(default_factory=list)

    def entries(self) -> Iterator[JournalEntry]:
        """Yields all entries by time, without duplicates. Raises `InputError` for a path that does
        not exist.
        """
        return self._once(heapq.merge(*map(self._of_file, self._files()), key=lambda entry: entry.time))

    def reopened(self) -> JournalReader | None:
        """Returns another reader of the same files; None if one is a pipe, which can be read only once."""
        return JournalReader(self.paths) if all(file.is_file() for file in self._files()) else None

    def _files(self) -> list[Path]:
        every_file = [file for path in self.paths for file in _files(path)]
        return list({file.resolve(): file for file in every_file}.values())

    def _once(self, entries: Iterable[JournalEntry]) -> Iterator[JournalEntry]:
        """Yields the entries without duplicates from overlapping files: entries with the same time, request
        UID, phase and object.
        """
        moment, seen, repeated = -1.0, set[tuple[str, str, str]](), 0
        for entry in entries:
            if entry.time != moment:
                moment = entry.time
                seen.clear()
            key = entry.request.uid, entry.phase, entry.name
            if entry.request.uid and key in seen:
                repeated += 1
                continue
            seen.add(key)
            yield entry
        if repeated:
            self.problems.append(f"{repeated} admissions stand in several files, and were decided once")

    def _of_file(self, path: Path) -> Iterator[JournalEntry]:
        try:
            with path.open("rb") as opened:
                yield from self._of_lines(path, opened)
        except OSError as error:
            self.problems.append(f"{path}: cannot be read: {error.strerror}")

    def _of_lines(self, path: Path, opened: BinaryIO) -> Iterator[JournalEntry]:
        count, number, audit = 0, 0, AuditLog()
        while line := opened.readline(LINE_LIMIT + 1):
            number += 1
            document, problem = _document(line)
            if not problem and HEAD in document:
                if document[HEAD] != VERSION:
                    problem = f"of journal version {as_json(document[HEAD])}, this is version {VERSION}"
            elif not problem and number == 1 and document.get("apiVersion") != API_VERSION:
                problem = f"neither a journal nor an audit log ({API_VERSION})"
            elif not problem:
                entry, problem = _entry(document, audit)
                if entry is not None:
                    count += 1
                    yield entry
            if problem:
                self.problems.append(f"{path}:{number}: {problem}; {count} admissions before it were read")
                break
        if audit.left_out:
            self.problems.append(
                f"{path}: {audit.left_out} events tell no whole object (patches, or below level Request)"
            )


def _document(line: bytes) -> tuple[dict[str, Any], str]:
    """Returns the JSON object in a line, and text for what is wrong with the line, "" for nothing."""
    if len(line) > LINE_LIMIT:
        return {}, f"a line of more than {LINE_LIMIT} bytes"
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        cut = "is cut" if not line.endswith(b"\n") else "is no JSON"
        return {}, f"{cut}: {error.msg if _is_text(line) else 'bytes that are no UTF-8'}"
    if not isinstance(document, dict):
        return {}, "is no JSON object"
    return ({}, "is nested too deeply") if deeper_than(document, LINE_DEPTH) else (document, "")


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _entry(document: dict[str, Any], audit: AuditLog) -> tuple[JournalEntry | None, str]:
    try:
        if document.get("apiVersion") == API_VERSION:
            return audit.entry(document), ""
        return entry_of(document), ""
    except NotAnEntryError as error:
        return None, f"is no admission: {error}"


def _files(path: str) -> list[Path]:
    place = Path(path)
    if not place.exists():
        raise InputError("no such file or folder", Where(path))
    if not place.is_dir():
        return [place]
    files = sorted(file for file in place.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise InputError("the folder holds no .jsonl, .log or .json file", Where(path))
    return files
