"""Keeps a valid CA and serving certificate in a folder: creates them, renews them in time, and replaces all
files atomically.

The five files are symbolic links through the link `..data` into the folder of one *generation*, as in a
Secret that the kubelet mounts. A renewal changes only that one link, so after a crash the folder has the old
files or the new ones. Only if the old ones are ordinary files, which the first renewal replaces one by one,
can a crash leave some of both; the link `..next` then names the new generation, and the next check makes the
missing links. A program that watches a mounted Secret can watch this folder too.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from certs.authority import (
    CHECK_EVERY,
    CertificateError,
    CertificateNames,
    KeyPair,
    Material,
    bundle_pem,
    read_bundle,
    read_pair,
    renewed,
)

CA_CERT, CA_KEY, TLS_CERT, TLS_KEY, CA_BUNDLE = "ca.crt", "ca.key", "tls.crt", "tls.key", "ca-bundle.crt"
_FILES = (CA_CERT, CA_KEY, TLS_CERT, TLS_KEY, CA_BUNDLE)
_CURRENT = "..data"
_NEXT = "..next"
_GENERATION = "..generation-"


class Rotation:
    """Keeps the certificates in `directory` (created if missing) valid for `names`."""

    def __init__(self, directory: Path, names: CertificateNames) -> None:
        self._directory = directory
        self._names = names

    def check(self, now: datetime) -> tuple[str, ...]:
        """Creates or renews the certificates that are due at `now`; returns the changes as texts.

        Raises `CertificateError` if existing files are invalid; they stay as they are. Raises `OSError` if
        files cannot be read or written; the folder then is as after a crash, and the next check completes the
        change.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(self._directory):
            _complete(self._directory)
            after, changes = renewed(load(self._directory), self._names, now)
            if changes:
                _replace(self._directory, after)
        return changes


async def keep(
    rotation: Rotation,
    clock: Callable[[], datetime],
    report: Callable[[str], None],
    interval: timedelta = CHECK_EVERY,
) -> None:
    """Calls `rotation.check` at once and then every `interval`, until cancelled. Passes changes and errors to
    `report` as texts.
    """
    while True:
        try:
            for step in await asyncio.to_thread(rotation.check, clock()):
                report(step)
        except (OSError, CertificateError) as error:
            report(f"certificates not renewed: {error}")
        await asyncio.sleep(interval.total_seconds())


def load(directory: Path) -> Material:
    """Returns the certificates in the folder; None for a missing pair.

    Raises `CertificateError`, which names the file, for an invalid one.
    """
    bundle = directory / CA_BUNDLE
    try:
        trusted = read_bundle(bundle.read_bytes()) if bundle.exists() else ()
    except CertificateError as error:
        raise CertificateError(f"{bundle}: {error}") from None
    return Material(
        ca=_load_pair(directory / CA_CERT, directory / CA_KEY),
        leaf=_load_pair(directory / TLS_CERT, directory / TLS_KEY),
        trusted=trusted,
    )


def _load_pair(certificate: Path, key: Path) -> KeyPair | None:
    if not certificate.exists() and not key.exists():
        return None
    for path in (certificate, key):
        if not path.exists():
            raise CertificateError(f"{path}: it is missing beside the other half; put it back or remove both")
    try:
        return read_pair(certificate.read_bytes(), key.read_bytes())
    except CertificateError as error:
        raise CertificateError(f"{certificate}, {key}: {error}; put the right one or remove both") from None


def _replace(directory: Path, material: Material) -> None:
    """Writes a new generation, links to it, and removes earlier generations.

    After a crash before the link `..next` exists, the old generation stays in use; later, `_complete`
    finishes the change at the next check.
    """
    if material.ca is None or material.leaf is None:
        raise ValueError("only complete material is written")
    generation = Path(tempfile.mkdtemp(prefix=_GENERATION, dir=directory))
    _write(generation / CA_CERT, material.ca.certificate_pem, 0o644)
    _write(generation / CA_KEY, material.ca.key_pem, 0o600)
    _write(generation / TLS_CERT, material.leaf.certificate_pem, 0o644)
    _write(generation / TLS_KEY, material.leaf.key_pem, 0o600)
    _write(generation / CA_BUNDLE, bundle_pem(material.trusted), 0o644)
    _sync_directory(generation)
    _link(directory / _NEXT, generation.name)
    _sync_directory(directory)
    _complete(directory)


def _complete(directory: Path) -> None:
    """Makes all links to the generation that `..next` names, and removes `..next` and earlier generations."""
    generation = _target(directory / _NEXT)
    if not (directory / _NEXT).exists():  # nothing has begun, or somebody has removed the generation
        return
    # Missing names first: in an empty folder, they are dangling links until `..data` is made, and then all
    # files exist at once.
    for name in _FILES:
        if not os.path.lexists(directory / name):
            _link(directory / name, f"{_CURRENT}/{name}")
    _link(directory / _CURRENT, generation)
    for name in _FILES:
        if _target(directory / name) != f"{_CURRENT}/{name}":
            _link(directory / name, f"{_CURRENT}/{name}")
    _sync_directory(directory)
    (directory / _NEXT).unlink()
    for former in directory.glob(f"{_GENERATION}*"):  # the previous generation, and leftovers of a crash
        if former.name != generation:
            shutil.rmtree(former, ignore_errors=True)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Creates a file with this mode, so that others can never read a key, and syncs its content to disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _link(path: Path, target: str) -> None:
    """Atomically replaces `path` by a symbolic link to `target`."""
    temporary = path.with_name(f"..new-{path.name}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(path)


def _target(path: Path) -> str:
    return os.readlink(path) if path.is_symlink() else ""


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Holds an exclusive lock on the folder. The kernel releases it if the process dies."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
