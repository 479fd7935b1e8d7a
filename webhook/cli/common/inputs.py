"""Adds and reads the inputs that several commands share: cluster files, manifests and policies."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from planner.cluster.snapshot import Snapshot
from planner.devices.claims import CLAIM_KINDS
from planner.model.errors import InputError, Where, without_controls
from planner.model.podgroup import PodGroup
from planner.model.topology import Topology
from planner.model.volumes import VOLUME_KINDS
from planner.model.words import listed
from webhook.admission.configuration.parameters import read_parameters
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, MODES, Settings, same_in_all_namespaces
from webhook.admission.environment import Environment
from webhook.cli.cluster_files.reading import read_cluster_files
from webhook.files.reader import Document, objects
from webhook.policy.engine.device_selectors import read_cluster
from webhook.policy.loading.files import PolicyStore, load_paths
from webhook.policy.model.policy import PolicySet
from webhook.workloads.reader import read


def add_cluster(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Adds `-c CLUSTER…`."""
    shown = "files or folders with output of `kubectl get nodes,pods,topologies -A -o yaml`"
    _add_paths(parser, "-c", "--cluster", "CLUSTER", shown, required=required)


def add_manifests(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Adds `-f MANIFEST…`."""
    shown = "files or folders of manifests; - reads standard input"
    _add_paths(parser, "-f", "--filename", "MANIFEST", shown, required=required)


def add_policies(parser: argparse.ArgumentParser) -> None:
    """Adds `-p POLICIES…`."""
    shown = "policy files or folders (default: the policies that ship with Bayplan)"
    _add_paths(parser, "-p", "--policies", "POLICIES", shown, required=False)


def add_topology(parser: argparse.ArgumentParser) -> None:
    """Adds `-t NAME`, the second argument of `topologies`."""
    parser.add_argument("-t", "--topology", metavar="NAME", help="only this topology")


def topologies(snapshot: Snapshot, name: str | None) -> list[Topology]:
    """Returns all topologies of a cluster, or only the one with this name. Raises `InputError` if there is
    none.
    """
    chosen = [topology for topology in snapshot.topologies if name in (None, topology.name)]
    if not chosen:
        titles = listed([topology.title for topology in snapshot.topologies]) or "none"
        asked = "no topology" if name is None else f"no topology {name!r}"
        raise InputError(f"{asked}; the cluster has {titles}", Where("--topology"))
    return chosen


def add_mode(parser: argparse.ArgumentParser) -> None:
    """Adds `--mode MODE`."""
    parser.add_argument(
        "--mode",
        choices=MODES,
        default=DEFAULT_SETTINGS.mode,
        help="mode of namespaces without the label bayplan.dev/mode, unless the parameter `mode` is set "
        "(default: %(default)s)",
    )


def _add_paths(
    parser: argparse.ArgumentParser, short: str, long: str, metavar: str, shown: str, *, required: bool
) -> None:
    """Adds an option that takes one or more paths and can be repeated."""
    parser.add_argument(
        short, long, metavar=metavar, nargs="+", action="extend", default=[], required=required, help=shown
    )


def cluster(paths: Sequence[str]) -> Snapshot:
    """Returns the snapshot of the cluster in these files. Raises `InputError` if they cannot be read or
    have no node.
    """
    return read_cluster_files(paths)[0]


def cluster_and_environment(args: argparse.Namespace) -> tuple[Snapshot | None, Environment]:
    """Returns the snapshot of the files of `-c` (None if there are none), and the environment of
    decisions, with the mode of `--mode` as default and the current time.

    Raises `InputError` for files that cannot be read.
    """
    settings = Settings(mode=args.mode)
    snapshot, environment = None, Environment(settings=same_in_all_namespaces(settings))
    if args.cluster:
        snapshot, environment = read_cluster_files(args.cluster, settings)
    return snapshot, replace(environment, now=time.time())


def in_force(environment: Environment, policies: PolicySet) -> Environment:
    """Returns the environment with the parameters in force: those in the policy files, overridden by those
    in the cluster. Raises `InputError` for invalid parameters.
    """
    parameters, problems = read_parameters(policies, environment.configured)
    if problems:
        raise InputError("; ".join(problems))
    return environment.with_parameters(parameters)


def with_claims_of(snapshot: Snapshot, documents: list[Document]) -> Snapshot:
    """Returns the cluster with the device claims and volume claims in the manifests, as if these were
    applied.

    Raises `InputError` for malformed claims.
    """
    kinds = (*CLAIM_KINDS, *VOLUME_KINDS)
    claims = [
        (document.file, document.value) for document in documents if document.value.get("kind") in kinds
    ]
    if not claims:
        return snapshot
    cluster = read_cluster(claims).base
    return snapshot.with_claims(cluster.claims, cluster.volumes)


def manifests(paths: Sequence[str]) -> list[Document]:
    """Returns the objects in manifests. Raises `InputError` for unreadable files, or if there is no
    object.
    """
    documents = objects(paths)
    if not documents:
        raise no_object(paths)
    return documents


def gangs(paths: Sequence[str]) -> list[PodGroup]:
    """Returns the gangs of the objects in manifests. Raises `InputError` as `manifests` does, and for a
    malformed workload.
    """
    return [group for item in manifests(paths) for group in read(item.value, where=Where(item.file)).gangs]


def no_object(paths: Sequence[str]) -> InputError:
    """Returns the error for files without an object."""
    return InputError("no object in it", Where(", ".join(paths)))


def without_duplicates(documents: list[Document]) -> list[Document]:
    """Returns the documents unchanged. Raises `InputError` if two objects of the same kind and namespace
    have the same name, because their gangs could not be distinguished.
    """
    seen: dict[tuple[str, ...], str] = {}
    for document in documents:
        value = document.value
        metadata = value.get("metadata") if isinstance(value.get("metadata"), dict) else {}
        if not metadata.get("name"):
            continue
        group = str(value["apiVersion"]).rpartition("/")[0]
        key = (group, value["kind"], str(metadata.get("namespace") or "default"), str(metadata["name"]))
        if key in seen:
            where = Where(document.file, "/".join((key[2], key[1], key[3])), "metadata.name")
            raise InputError(f"occurs twice, first in {seen[key]}", where)
        seen[key] = document.file
    return documents


def policies(paths: Sequence[str]) -> PolicySet:
    """Returns the policies in these files or folders, by default those that ship with Bayplan, and prints
    their warnings. Raises `PolicyError` for invalid policies, `InputError` for unreadable files.
    """
    loaded = load_paths(list(paths) or [shipped("policies")])
    for warning in loaded.warnings:
        note(f"Warning: {warning}")
    return loaded


def policy_store(paths: Sequence[str]) -> PolicyStore:
    """Returns the policies for a server, which can reload changed files. Raises the same errors as
    `policies`.
    """
    return PolicyStore(list(paths) or [shipped("policies")])


def shipped(name: str) -> Path:
    """Returns the path of a folder that ships with Bayplan. In a checkout, the folder is beside the
    packages; in an installation, it is inside the package `webhook`. Raises `InputError` if it is missing.
    """
    package = Path(__file__).resolve().parents[2]
    for place in (package.parent / name, package / "_shipped" / name):
        if place.is_dir():
            return place
    raise InputError("is missing from this installation", Where(name))


def note_unread(paths: Iterable[str]) -> None:
    """Prints a line for each API path that the user may not list."""
    for path in dict.fromkeys(paths):
        note(f"not read, for want of the right to list it: {path}")


def note(text: str) -> None:
    """Prints a note on standard error, after what was printed on standard output before. Unprintable
    characters become question marks, so that input files cannot send control sequences to the terminal.
    """
    shown = without_controls(text, "\n")
    sys.stdout.flush()
    sys.stderr.write(shown + "\n")
