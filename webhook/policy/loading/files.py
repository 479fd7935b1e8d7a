"""Policies on disk: reads them, determines their revision, and detects changes. The only I/O of policies.

All calls block. A server calls `PolicyStore.reload_if_changed` from a thread every few seconds. git-sync and
ConfigMap mounts change a folder by replacing a symlink, which counts as a change.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from webhook.files.folders import SUFFIXES, files_below
from webhook.policy.loading.document import MAX_BYTES
from webhook.policy.loading.errors import PolicyError, Problem
from webhook.policy.loading.load import TEST_FILES, Functions, load
from webhook.policy.model.policy import PolicySet

SCHEMA_SUFFIX = ".schema.json"
"""A JSON schema for parameters in the same folder; it is not a policy."""


GIT_SECONDS = 5
"""Timeout of a `git` command; if it is exceeded, the revision is a hash of the content."""


COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A full Git commit hash, SHA-1 or SHA-256: git-sync names the folder of a checkout after it."""


COMMIT_SHOWN = 12
"""Number of digits of a commit in messages and annotations; enough to tell commits of a repository apart."""


READS = 3
"""Maximum number of attempts to read a set of files that changes while it is read."""


def find(paths: Sequence[str | Path]) -> list[Path]:
    """Returns the policy files among files and folders (recursively, sorted), without hidden files and
    folders, and without test cases.

    Raises PolicyError for a missing path, for a folder that cannot be read, because its policies would
    otherwise be missing unnoticed, and for a link that leads out of its folder: whoever may commit policies
    must not be able to read the server's own files.
    """
    paths_below: dict[Path, None] = {}
    for root in map(Path, paths):
        if root.is_dir():
            files = _files_below(root, _is_policy)
            read_files = (path for file in files for path in (file, _schema_path(file)))
            if problems := [_outside(path, root) for path in read_files if not _lies_in(path, root)]:
                raise PolicyError(problems)
            paths_below.update(dict.fromkeys(files))
        elif root.exists():
            paths_below[root] = None
        else:
            raise PolicyError([Problem(str(root), 0, 0, "", "", "no such file or folder")])
    return list(paths_below)


def case_files(paths: Sequence[str | Path]) -> list[Path]:
    """Returns the files of test cases among files and folders. Raises PolicyError as `find` does for
    policies, apart from links.
    """
    paths_below: dict[Path, None] = {}
    for root in map(Path, paths):
        if root.is_dir():
            paths_below.update(dict.fromkeys(sorted(_files_below(root, TEST_FILES.__contains__))))
        elif root.name in TEST_FILES:
            find([root])  # raises PolicyError if there is no such file
            paths_below[root] = None
    return list(paths_below)


def _files_below(folder: Path, wanted: Callable[[str], bool]) -> list[Path]:
    try:
        return files_below(folder, wanted)
    except OSError as error:
        problem = Problem(str(error.filename or folder), 0, 0, "", "", f"cannot be read: {error.strerror}")
        raise PolicyError([problem]) from None


def _lies_in(file: Path, folder: Path) -> bool:
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))


def _outside(file: Path, folder: Path) -> Problem:
    return Problem(
        str(file), 0, 0, "", "", f"is a link that leads out of {folder}; put the file itself there"
    )


def _is_policy(name: str) -> bool:
    return name.endswith(SUFFIXES) and name not in TEST_FILES and not name.endswith(SCHEMA_SUFFIX)


def read(files: Sequence[Path]) -> list[tuple[str, str]]:
    """Returns (path, text) of each file. Raises PolicyError for an unreadable file, or one that is not
    UTF-8.
    """
    texts, problems = [], []
    for file in files:
        try:
            state = file.stat()
            if not stat.S_ISREG(state.st_mode):  # reading a pipe would block forever
                raise OSError(0, "it is no regular file")
            if state.st_size > MAX_BYTES:
                raise OSError(0, f"larger than {MAX_BYTES} bytes")
            texts.append((str(file), file.read_bytes().decode()))
        except UnicodeDecodeError as error:
            problems.append(Problem(str(file), 0, 0, "", "", f"is not UTF-8 (byte {error.start})"))
        except OSError as error:
            problems.append(Problem(str(file), 0, 0, "", "", f"cannot be read: {error.strerror}"))
    if problems:
        raise PolicyError(problems)
    return texts


def load_paths(paths: Sequence[str | Path], *, functions: Functions | None = None) -> PolicySet:
    """Returns the policies in files and folders, with their revision. Raises PolicyError with all
    problems.
    """
    texts = read(find(paths))
    if not texts:
        shown = ", ".join(map(str, paths))
        raise PolicyError([Problem(shown, 0, 0, "", "", "no policy file (.yaml, .yml, .json) in here")])
    paths_of_schemas = {path: _schema_path(Path(path)) for path, _ in texts}
    schema_texts = read([path for path in dict.fromkeys(paths_of_schemas.values()) if path.is_file()])
    values = {path: _json(path, text) for path, text in schema_texts}
    schemas = {
        path: values[str(schema)] for path, schema in paths_of_schemas.items() if str(schema) in values
    }
    return load(texts, functions=functions, revision=revision(paths, texts + schema_texts), schemas=schemas)


def _schema_path(file: Path) -> Path:
    """Returns the path of the JSON schema beside a file (`parameters.schema.json`), whether it exists or
    not.
    """
    return file.with_suffix(SCHEMA_SUFFIX)


def _json(path: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PolicyError([Problem(path, 0, 0, "", "", f"no JSON: {error}")]) from None


def revision(paths: Sequence[str | Path], texts: Sequence[tuple[str, str]]) -> str:
    """Returns the Git commit of the folder (with `-dirty` if files differ from it), else a hash of the
    content.

    A folder of git-sync needs no Git: its link leads to a folder that is named after the commit, which is
    part of git-sync's contract. Several paths share a commit only within one repository; otherwise, and for
    untracked files, the content is hashed.
    """
    if commit := _published(path for path, _ in texts):
        return commit
    commits = {_commit(Path(path)) for path in paths}
    if len(commits) == 1 and (commit := commits.pop()):
        return commit
    digest = hashlib.sha256()
    for path, text in sorted(texts):
        digest.update(os.fsencode(f"{Path(path).name}\0{len(text)}\0{text}"))
    return f"sha256:{digest.hexdigest()[:12]}"


def _published(files: Iterable[str]) -> str:
    """Returns the commit after which git-sync named the folder with all files, shortened to `COMMIT_SHOWN`
    digits; "" if no link leads to such a folder.
    """
    commits: set[str] = set()
    for file in files:
        # Only a link (git-sync's) tells the commit: a name in the given path itself may be anybody's choice.
        commit_parts = [part for part in Path(os.path.realpath(file)).parts if COMMIT.fullmatch(part)]
        path_parts = Path(os.path.abspath(file)).parts
        commits.add(commit_parts[-1] if commit_parts and commit_parts[-1] not in path_parts else "")
    return commits.pop()[:COMMIT_SHOWN] if len(commits) == 1 else ""


def _commit(path: Path) -> str:
    """Returns the short commit of the repository that tracks a path, "" if none does."""
    folder, target = (path, ".") if path.is_dir() else (path.parent, path.name)
    if not _git(folder, "ls-files", "--", target):
        return ""
    head = _git(folder, "rev-parse", "--short=12", "HEAD")
    if not head:
        return ""
    return f"{head}-dirty" if _git(folder, "status", "--porcelain", "--", target) else head


def _git(folder: Path, *arguments: str) -> str:
    """Returns the output of a Git command, "" if it fails or there is no Git.

    `core.fsmonitor` is switched off, because the repository's own configuration may name a program there,
    which Git would run. Without optional locks, `git status` writes nothing into the repository.
    """
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=GIT_SECONDS, check=False, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


class PolicyStore:
    """Holds the policy set in use, `current`. If a reload fails, the last valid set stays in use, and `error`
    is the reason; None after a successful load.
    """

    def __init__(self, paths: Sequence[str | Path], *, functions: Functions | None = None) -> None:
        """Loads the set for the first time. Raises PolicyError: a server does not start with invalid
        policies.
        """
        self.paths = tuple(paths)
        self.functions = functions
        self._seen: tuple[Any, ...] | None = None
        self.current: PolicySet = self._load()
        self.error: PolicyError | None = None

    def reload_if_changed(self) -> bool:
        """Loads the set again if a file changed, was added or removed; returns whether a new set is
        in use.
        """
        try:
            if self._fingerprint() == self._seen:
                return False
            self.current = self._load()
        except PolicyError as error:
            self.error = error
            return False
        except Exception as error:  # unexpected: it must not end the server's watch of its files
            message = f"cannot be loaded: {type(error).__name__}: {error}"
            self.error = PolicyError([Problem(", ".join(map(str, self.paths)), 0, 0, "", "", message)])
            return False
        self.error = None
        return True

    def _load(self) -> PolicySet:
        """Returns a consistent set: it is read again if the files changed while they were read.

        Raises PolicyError, also if they changed during each of `READS` attempts.
        """
        for _ in range(READS):
            self._seen = self._fingerprint()
            loaded: PolicySet | PolicyError
            try:
                loaded = load_paths(self.paths, functions=self.functions)
            except PolicyError as error:
                loaded = error
            # Without a fingerprint, the files may be from two versions of the folder.
            is_known = self._seen is not None or isinstance(loaded, PolicyError)
            if is_known and self._fingerprint() == self._seen:
                break
        else:
            shown = ", ".join(map(str, self.paths))
            loaded = PolicyError([Problem(shown, 0, 0, "", "", "changed each time while it was read")])
        if isinstance(loaded, PolicyError):
            raise loaded
        return loaded

    def _fingerprint(self) -> tuple[Any, ...] | None:
        """Returns the real path, inode, size and modification time of all files and of the schemas beside
        them, which change with them.

        None if the files cannot be listed, for example while a link is replaced.
        """
        try:
            files = find(self.paths)
        except PolicyError:
            return None
        return tuple((str(file), _stat(file), _stat(_schema_path(file))) for file in files)


def _stat(file: Path) -> tuple[Any, ...]:
    try:
        state = file.stat()
        return (os.path.realpath(file), state.st_ino, state.st_size, state.st_mtime_ns)
    except OSError:
        return ("gone",)
