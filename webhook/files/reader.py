"""Reads YAML and JSON files from disk, for clusters and manifests. No other module does that."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from planner.manifests.lists import item_of
from planner.model.errors import InputError, Where
from webhook.files import yaml_documents
from webhook.files.folders import SUFFIXES, files_below
from webhook.jsontools.depth import DEPTH_LIMIT, deeper_than

STDIN = "-"


FILE_LIMIT = 512 * 1024 * 1024
"""Maximum size of one file, or of standard input, in bytes; `kubectl get nodes,pods -o yaml` of 10,000 nodes
is smaller.
"""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file, or one object of a List in it. `file`: the path, `-` for standard input.
    `index`: the document's number in the file, from 0; objects of one List have the same. `item`: the
    object's number in the List, from 0, after those of the Lists around it; empty for a whole document."""

    file: str
    index: int
    value: Any
    item: tuple[int, ...] = ()


def documents(paths: Sequence[str]) -> list[Document]:
    """Returns the YAML and JSON documents in files and folders (recursively, sorted by name, without hidden
    files and folders), apart from empty ones.

    Raises `InputError` with the file, the line of a syntax error, and what is wrong.
    """
    return [document for path in paths for file in _files(path) for document in _documents(file)]


def objects(paths: Sequence[str]) -> list[Document]:
    """Returns the Kubernetes objects in files and folders: documents, and the items of List kinds.

    Raises `InputError` as `documents` does, and for a document that is no object with kind and apiVersion.
    """
    return [item for document in documents(paths) for item in _items(document)]


def objects_and_errors(paths: Sequence[str]) -> tuple[list[Document], list[InputError]]:
    """Returns the objects of the readable files, and an error for each other file or path.

    Raises `InputError` only for an empty path.
    """
    read: list[Document] = []
    errors: list[InputError] = []
    for path in paths:
        try:
            files = _files(path)
        except InputError as error:
            if not path:
                raise
            errors.append(error)
            continue
        for file in files:
            try:
                read += [item for document in _documents(file) for item in _items(document)]
            except InputError as error:
                errors.append(error)
    return read, errors


def _items(document: Document) -> Iterator[Document]:
    value, where = document.value, Where(document.file, f"document {document.index + 1}")
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise InputError("is no Kubernetes object: it has no kind", where)
    if value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for number, item in enumerate(value["items"]):
            path = (*document.item, number)
            yield from _items(Document(document.file, document.index, item_of(value, item), path))
        return
    if not isinstance(value.get("apiVersion"), str):
        raise InputError(
            "has no apiVersion", Where(document.file, f"{value['kind']} document {document.index + 1}")
        )
    yield document


def _files(path: str) -> list[str]:
    if path == STDIN:
        return [STDIN]
    if not path:
        raise InputError("an empty path; name a file or a folder, or - for standard input")
    if not os.path.isdir(path):
        return [path]
    files = sorted(files_of(path))
    if not files:
        raise InputError("the folder holds no .yaml, .yml or .json file", Where(path))
    return files


def files_of(folder: str) -> list[str]:
    """Returns the YAML and JSON files in a folder, recursively. Raises `InputError` for a folder that cannot
    be read.
    """
    try:
        files = files_below(folder, lambda name: name.endswith(SUFFIXES))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", Where(str(error.filename or folder))) from None
    return [str(file) for file in files if file.is_file()]


_TEMPLATE_MARK = b"{{"
"""The beginning of an expression in a Helm chart and other Go templates."""


def _documents(file: str) -> list[Document]:
    text = _read(file)
    try:
        if file.endswith(".json"):
            values = [orjson.loads(text)]
        else:
            values = yaml_documents.load_all(text)
    except orjson.JSONDecodeError as error:
        raise InputError(f"no JSON: {error.msg}", Where(f"{file}:{error.lineno}:{error.colno}")) from None
    except yaml_documents.YamlError as error:
        place = f"{file}:{error.line}:{error.column}" if error.line else file
        hint = "; a template, as of Helm, must be rendered first" if _TEMPLATE_MARK in text else ""
        raise InputError(f"no YAML: {error.problem}{hint}", Where(place)) from None
    if any(deeper_than(value, DEPTH_LIMIT) for value in values):
        raise InputError(f"nested deeper than {DEPTH_LIMIT} levels", Where(file))
    if file.endswith(".json"):
        _check_keys(text, file)
    return [Document(file, index, value) for index, value in enumerate(values) if value is not None]


def _check_keys(text: bytes, file: str) -> None:
    """Raises `InputError` if a key occurs twice in an object of this JSON: orjson keeps the last value
    without a word, and the YAML reader refuses it. It takes as long as reading: 35 ms for a megabyte."""

    def checked(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InputError(f"no JSON: key {key[:60]!r} occurs twice", Where(file))
            seen.add(key)

    # Numbers stay text: Python refuses to read one of thousands of digits, which orjson reads.
    json.loads(text, object_pairs_hook=checked, parse_int=str)


def _read(file: str) -> bytes:
    try:
        with nullcontext(sys.stdin.buffer) if file == STDIN else Path(file).open("rb") as opened:
            content = opened.read(FILE_LIMIT + 1)  # one byte more, because a pipe or device has no size
        if len(content) > FILE_LIMIT:
            raise InputError(f"larger than {FILE_LIMIT // 2**20} MiB", Where(file))
        return content
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", Where(file)) from None
