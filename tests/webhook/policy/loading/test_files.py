"""Policies on disk: which files count, what the revision is, and when a set is loaded again."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.policy.helpers import check, validating
from webhook.policy import PolicyError
from webhook.policy.loading import files
from webhook.policy.loading.files import PolicyStore, find, load_paths


def write(path: Path, name: str, expression: str = "true") -> Path:
    """A policy file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(validating(check(expression), name=name)))
    return path


def names(store: PolicyStore) -> list[str]:
    """The policies that answer now."""
    return [policy.name for policy in store.current.policies]


def git(folder: Path, *words: str) -> str:
    """Run Git in a folder, on nobody's configuration."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout.strip()


def test_folders_are_read_recursively_without_cases_and_hidden_files(tmp_path: Path) -> None:
    """YAML and JSON; the rest is not looked at."""
    write(tmp_path / "b" / "policy.yml", "b")
    write(tmp_path / "a.json", "a").write_text(
        '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}'
    )
    write(tmp_path / ".hidden" / "policy.yaml", "h")
    (tmp_path / "b" / "tests.yaml").write_text("cases: []")
    (tmp_path / "README.md").write_text("# no policy")
    policies = load_paths([tmp_path])
    assert [policy.name for policy in policies.policies] == ["b"]
    assert len(policies.files) == 2


def test_a_folder_that_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    """Its policies would no longer be in force, without a word; a running server keeps the last good set."""
    write(tmp_path / "a" / "policy.yaml", "a")
    store = PolicyStore([tmp_path])
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # too deep to open by its path; root reads every folder, whatever its mode
        os.mkdir("d" * 250, dir_fd=place)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    with pytest.raises(PolicyError, match="cannot be read: File name too long"):
        load_paths([tmp_path])
    assert store.reload_if_changed() is False
    assert names(store) == ["a"]
    assert "cannot be read" in str(store.error)


def test_lost_and_found_of_a_volume_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only root may read it, and no policy is in it: a volume's own folder may be the folder of policies."""
    write(tmp_path / "policy.yaml", "a")
    scandir = os.scandir

    def scanned(path: Any) -> Any:
        if str(path).endswith("private") or str(path).endswith("lost+found"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scanned)
    (tmp_path / "lost+found").mkdir()
    assert names(PolicyStore([tmp_path])) == ["a"]
    (tmp_path / "private").mkdir()
    with pytest.raises(PolicyError, match="private: cannot be read: Permission denied"):
        load_paths([tmp_path])


def test_an_error_that_no_reader_expects_keeps_the_last_good_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told as the reason, and the next valid set is taken up: a server goes on watching its files."""
    file = write(tmp_path / "policy.yaml", "a")
    store = PolicyStore([tmp_path])
    with monkeypatch.context() as patched:
        patched.setattr(files, "load", lambda *_, **__: 1 // 0)
        write(file, "longer-name")
        assert store.reload_if_changed() is False
    assert names(store) == ["a"]
    assert "cannot be loaded: ZeroDivisionError" in str(store.error)
    write(file, "another-name-yet")
    assert store.reload_if_changed() is True
    assert names(store) == ["another-name-yet"]


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b"\x80abc"])
def test_what_cannot_be_read_is_told_with_its_file(tmp_path: Path, content: bytes | None) -> None:
    """A file that is missing, bytes that are no UTF-8."""
    file = tmp_path / "p.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PolicyError, match=r"p\.yaml: (no such file|is not UTF-8)"):
        load_paths([file])


def test_a_folder_without_policies_is_an_error(tmp_path: Path) -> None:
    """A wrong path would else let everything through."""
    with pytest.raises(PolicyError, match="no policy file"):
        load_paths([tmp_path])


def test_the_revision_of_a_checkout_is_its_commit(tmp_path: Path) -> None:
    """Marked as dirty when a file of the folder differs, not when one elsewhere does."""
    git(tmp_path, "init", "-q")
    file = write(tmp_path / "policies" / "p.yaml", "p")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "--short=12", "HEAD")
    folder = tmp_path / "policies"
    assert load_paths([folder]).revision == commit
    (tmp_path / "elsewhere.txt").write_text("x")
    assert load_paths([folder]).revision == commit
    write(file, "q")
    assert load_paths([folder]).revision == f"{commit}-dirty"
    write(file, "p")
    write(folder / "new.yaml", "n")
    assert load_paths([folder]).revision == f"{commit}-dirty"


def test_the_revision_elsewhere_is_a_hash_of_the_content(tmp_path: Path) -> None:
    """The same content in another folder has the same one."""
    write(tmp_path / "a" / "p.yaml", "p")
    write(tmp_path / "b" / "p.yaml", "p")
    first, second = load_paths([tmp_path / "a"]).revision, load_paths([tmp_path / "b"]).revision
    assert first == second
    assert first.startswith("sha256:")
    write(tmp_path / "b" / "p.yaml", "q")
    assert load_paths([tmp_path / "b"]).revision != first


def test_a_store_loads_again_only_when_a_file_changed(tmp_path: Path) -> None:
    """A file that changes, comes or goes."""
    file = write(tmp_path / "p.yaml", "first")
    store = PolicyStore([tmp_path])
    assert not store.reload_if_changed()
    write(file, "second")
    assert store.reload_if_changed()
    assert names(store) == ["second"]
    write(tmp_path / "q.yaml", "third")
    assert store.reload_if_changed()
    file.unlink()
    assert store.reload_if_changed()
    assert names(store) == ["third"]
    assert not store.reload_if_changed()


def test_a_schema_of_parameters_counts_as_a_file_of_the_set(tmp_path: Path) -> None:
    """A schema that comes, changes or goes is a new set, with a revision of its own."""
    write(tmp_path / "p.yaml", "first")
    (tmp_path / "parameters.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: x}\n"
    )
    schema = tmp_path / "parameters.schema.json"
    store = PolicyStore([tmp_path])
    revisions = {store.current.revision}
    for text in ("{}", '{"title": "c"}'):
        schema.write_text(text)
        assert store.reload_if_changed()
        revisions.add(store.current.revision)
    assert len(revisions) == 3
    schema.unlink()
    assert store.reload_if_changed()
    assert store.current.revision in revisions


def test_a_bad_reload_keeps_the_last_good_set_and_says_why(tmp_path: Path) -> None:
    """The error goes when the file is mended."""
    file = write(tmp_path / "p.yaml", "first")
    store = PolicyStore([tmp_path])
    revision = store.current.revision
    write(file, "second", "nope")
    assert not store.reload_if_changed()
    assert (names(store), store.current.revision) == (["first"], revision)
    assert "undeclared name 'nope'" in str(store.error)
    write(file, "third")
    assert store.reload_if_changed()
    assert (names(store), store.error) == (["third"], None)


def test_a_folder_that_is_gone_keeps_the_last_good_set(tmp_path: Path) -> None:
    """As between two steps of a mount."""
    file = write(tmp_path / "mount" / "p.yaml", "first")
    store = PolicyStore([tmp_path / "mount"])
    file.unlink()
    file.parent.rmdir()
    assert not store.reload_if_changed()
    assert names(store) == ["first"]
    assert store.error is not None


def test_a_swapped_symlink_counts_as_a_change(tmp_path: Path) -> None:
    """As git-sync does it: a new folder, and the link turned to it at once."""
    for name in ("one", "two"):
        write(tmp_path / name / "p.yaml", name)
    for file in (tmp_path / "one" / "p.yaml", tmp_path / "two" / "p.yaml"):
        os.utime(file, (1, 1))
    link = tmp_path / "current"
    link.symlink_to("one")
    store = PolicyStore([link])
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").rename(link)
    assert store.reload_if_changed()
    assert names(store) == ["two"]


def publish(root: Path, commit: str) -> None:
    """Turn `current` to a commit's folder in one step, as git-sync does."""
    (root / "next").symlink_to(f".worktrees/{commit}")
    (root / "next").rename(root / "current")


@pytest.mark.parametrize("length", [40, 64])
def test_what_git_sync_published_has_its_commit_as_revision(tmp_path: Path, length: int) -> None:
    """By the folder's name, for the whole volume, the link or a folder in it, as the image has no Git."""
    first, second = "0a" * (length // 2), "1b" * (length // 2)
    for commit in (first, second):
        write(tmp_path / ".worktrees" / commit / "team" / "p.yaml", "p")
    publish(tmp_path, first)
    for folder in (tmp_path, tmp_path / "current", tmp_path / "current" / "team"):
        store = PolicyStore([folder])
        assert store.current.revision == first[:12]
        publish(tmp_path, second)
        assert store.reload_if_changed()
        assert store.current.revision == second[:12]
        publish(tmp_path, first)


def test_a_folder_that_is_named_like_a_commit_says_nothing_of_itself(tmp_path: Path) -> None:
    """Nor do two links that lead to two commits: then the content is the revision."""
    first, second = tmp_path / ("0a" * 20), tmp_path / ("1b" * 20)
    for folder in (first, second):
        write(folder / "p.yaml", folder.name[:2])
    assert load_paths([first]).revision.startswith("sha256:")
    (tmp_path / "one").symlink_to(first.name)
    (tmp_path / "two").symlink_to(second.name)
    assert load_paths([tmp_path / "one"]).revision == first.name[:12]
    assert load_paths([tmp_path / "one", tmp_path / "two"]).revision.startswith("sha256:")


def test_a_set_is_never_a_mixture_of_two_commits(tmp_path: Path) -> None:
    """While commit after commit is published, every set that answers is one of them, whole."""
    commits = [f"{number:040x}" for number in range(1, 400)]
    for number, commit in enumerate(commits):
        for part in ("a", "b", "c", "d"):
            write(tmp_path / ".worktrees" / commit / f"{part}.yaml", f"{part}{number}")
    publish(tmp_path, commits[0])
    store = PolicyStore([tmp_path / "current"])
    publisher = threading.Thread(target=lambda: [publish(tmp_path, commit) for commit in commits[1:]])
    publisher.start()
    while publisher.is_alive():
        store.reload_if_changed()
        assert len({name[1:] for name in names(store)}) == 1
    publisher.join()
    assert store.reload_if_changed() or store.error is None
    assert {name[1:] for name in names(store)} == {str(len(commits) - 1)}


def test_files_that_cannot_be_listed_before_and_after_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file seems to lie outside of its folder while links are swapped: what is read then may be mixed."""
    write(tmp_path / "p.yaml", "p")
    listed: list[Sequence[str | Path]] = []

    def find_while_swapped(paths: Sequence[str | Path]) -> list[Path]:
        listed.append(paths)
        if len(listed) in (1, 3):
            raise PolicyError([])
        return find(paths)

    monkeypatch.setattr(files, "find", find_while_swapped)
    store = PolicyStore([tmp_path])
    assert names(store) == ["p"]
    assert len(listed) == 7, "twice listed to no avail and read, then listed, read, and listed again"


def test_a_configmap_mount_is_read_once_and_its_swap_noticed(tmp_path: Path) -> None:
    """The kubelet keeps files behind `..data` and swaps that link."""
    for name in ("..2026_1", "..2026_2"):
        write(tmp_path / name / "p.yaml", name.strip("."))
    (tmp_path / "..data").symlink_to("..2026_1")
    (tmp_path / "p.yaml").symlink_to("..data/p.yaml")
    store = PolicyStore([tmp_path])
    assert names(store) == ["2026_1"]
    (tmp_path / "..next").symlink_to("..2026_2")
    (tmp_path / "..next").rename(tmp_path / "..data")
    assert store.reload_if_changed()
    assert names(store) == ["2026_2"]


def test_folders_behind_symlinks_are_read_and_circles_end(tmp_path: Path) -> None:
    """As in a mount whose files lie in folders."""
    write(tmp_path / "..data" / "sub" / "p.yaml", "p")
    (tmp_path / "sub").symlink_to("..data/sub")
    (tmp_path / "..data" / "sub" / "again").symlink_to(tmp_path / "sub")
    assert [policy.name for policy in load_paths([tmp_path]).policies] == ["p"]


def test_a_store_does_not_start_on_bad_policies(tmp_path: Path) -> None:
    """The program ends with file, line and column."""
    write(tmp_path / "p.yaml", "p", "1 +")
    with pytest.raises(PolicyError, match=r"p\.yaml:\d+:\d+: "):
        PolicyStore([tmp_path])


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Whoever may commit a policy may not have the server's own files read."""
    write(tmp_path / "policies" / "p.yaml", "p")
    (tmp_path / "secret.yaml").write_text("token: s3cret")
    for name in ("q.yaml", "p.schema.json"):
        link = tmp_path / "policies" / name
        link.symlink_to("../secret.yaml")
        with pytest.raises(PolicyError, match=f"{name}: is a link that leads out of .*policies") as raised:
            load_paths([tmp_path / "policies"])
        assert "s3cret" not in str(raised.value)
        link.unlink()


def test_a_pipe_among_policies_is_an_error_and_not_waited_for(tmp_path: Path) -> None:
    """Nobody ever writes into it."""
    write(tmp_path / "p.yaml", "p")
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(PolicyError, match=r"pipe\.yaml: cannot be read: it is no regular file"):
        load_paths([tmp_path])
