"""Reads cluster files into a snapshot and an environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError, Where
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings, same_in_all_namespaces
from webhook.admission.environment import Environment
from webhook.files.reader import Document, documents
from webhook.policy.engine.device_selectors import read_cluster


def read_cluster_files(
    paths: Sequence[str], settings: Settings = DEFAULT_SETTINGS
) -> tuple[Snapshot, Environment]:
    """Returns the snapshot and the environment of the cluster in these files.

    `settings`: those in force if the files set none. Raises `InputError` for files that cannot be read,
    and for a cluster without nodes: a file that is still being written looks like that, and every workload
    would be rejected.
    """
    return read_cluster_documents(paths, documents(paths), settings)


def read_cluster_documents(
    paths: Sequence[str], read_documents: Sequence[Document], settings: Settings
) -> tuple[Snapshot, Environment]:
    """Returns the same as `read_cluster_files`, for the documents that are already read from these paths."""
    snapshot = read_cluster((document.file, document.value) for document in read_documents)
    if not snapshot.nodes:
        files = dict.fromkeys(document.file for document in read_documents) or paths  # a file may be empty
        raise InputError("no Node in it; a cluster has at least one", Where(", ".join(files)))
    return snapshot, _environment(read_documents, settings)


def read_environment(paths: Sequence[str]) -> Environment:
    """Returns only the environment of the cluster in these files, which need not contain nodes. Raises
    `InputError` for files that cannot be read.
    """
    return _environment(documents(paths)) if paths else Environment()


def _environment(read_documents: Iterable[Document], settings: Settings = DEFAULT_SETTINGS) -> Environment:
    objects = objects_in(document.value for document in read_documents)
    return Environment.of_objects(objects, same_in_all_namespaces(settings))


def objects_in(values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yields the Kubernetes objects in these documents, and the items of Lists instead of the Lists."""
    for value in values:
        if isinstance(value, dict) and isinstance(value.get("items"), list):
            yield from objects_in(value["items"])
        elif isinstance(value, dict):
            yield value
