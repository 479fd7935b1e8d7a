"""Settings and caches for all tests. They make results independent of the machine and the date, and cache
slow parsing.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from webhook.cel import program
from webhook.files import yaml_documents
from webhook.files.yaml_documents import MarkedDocument
from webhook.policy.loading import document, files
from webhook.policy.loading.load import Functions
from webhook.policy.model.policy import PolicySet

# Bytecode is kept, whatever the environment says: each command that a test starts would compile all modules
# again, which is half of what it costs.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Two of Hypothesis' own checks compare time on the wall with a bound: the run of one example, and how long
# examples take to draw. A busy machine fails them. What an answer may cost is tested where it is promised.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples each time, so that a commit that passed passes again. `make explore` takes new ones.
settings.register_profile("steady", settings.get_profile("explore"), derandomize=True)
settings.load_profile("steady")

COLLECTIONS = (20_000, 20, 1_000)
"""When the garbage collector runs. Tests keep most of what they make (policies, cached plans, examples), so
full collections would visit it again and again: a tenth of what all tests cost.
"""

SHIPPED = Path(__file__).parents[1] / "policies"

SHORT = 2_000
"""Bytes of a file that is parsed each time."""


def pytest_configure(config: pytest.Config) -> None:
    """Caches before test modules are imported: several load the shipped policies for their parameters. No
    garbage is collected until then, since nearly all that is made stays.
    """
    gc.set_threshold(*COLLECTIONS)
    gc.disable()
    patched = pytest.MonkeyPatch()
    patched.setattr(program, "parse", cache(program.parse))
    patched.setattr(yaml_documents, "load_all", each_long_yaml_parsed_once())
    patched.setattr(document, "load_marked", each_marked_yaml_parsed_once())
    patched.setattr(files, "load", each_set_of_policies_loaded_once())
    patched.setattr(files, "_commit", commit_of_the_checkout_asked_once())
    config.add_cleanup(patched.undo)


def pytest_collection_finish() -> None:
    """Leaves modules, parameters and policy sets to the end: a full collection would visit each of them."""
    gc.freeze()
    gc.enable()


def each_long_yaml_parsed_once() -> Callable[[bytes], list[Any]]:
    """Caches parsed YAML: several hundred tests read the files of the example clusters. Each test gets its
    own copy, because copying is ten times as fast as parsing.
    """
    copies: dict[bytes, bytes] = {}
    load_all = yaml_documents.load_all

    def copied(text: bytes) -> list[Any]:
        if len(text) < SHORT:
            return load_all(text)
        if text not in copies:
            copies[text] = pickle.dumps(load_all(text))
        return pickle.loads(copies[text])  # type: ignore[no-any-return]

    return copied


def each_marked_yaml_parsed_once() -> Callable[..., list[MarkedDocument]]:
    """Caches the files of policies, which many sets contain. Each test gets its own copy of the values; the
    positions are shared.
    """
    copies: dict[tuple[str, int, int], list[tuple[bytes, MarkedDocument]]] = {}
    load_marked = document.load_marked

    def copied(text: str, *, max_depth: int, max_values: int) -> list[MarkedDocument]:
        key = (text, max_depth, max_values)
        if key not in copies:
            documents = load_marked(text, max_depth=max_depth, max_values=max_values)
            if len(text) < SHORT:
                return documents
            copies[key] = [(pickle.dumps(parsed.value), parsed) for parsed in documents]
        return [MarkedDocument(pickle.loads(value), parsed.marks) for value, parsed in copies[key]]

    return copied


def each_set_of_policies_loaded_once() -> Callable[..., PolicySet]:
    """Caches loaded policy sets: several hundred tests load the shipped policies. The files are read each
    time; a set is reused if all their texts are unchanged. Nothing modifies a loaded set.
    """
    loaded: dict[tuple[object, ...], PolicySet] = {}
    load = files.load

    def load_once(
        texts: Iterable[tuple[str, str]],
        *,
        functions: Functions | None = None,
        revision: str = "",
        schemas: Mapping[str, Any],
    ) -> PolicySet:
        rows = tuple(texts)
        key = (rows, None if functions is None else id(functions), revision, repr(schemas))
        if key not in loaded:
            loaded[key] = load(rows, functions=functions, revision=revision, schemas=schemas)
        return loaded[key]

    return load_once


def commit_of_the_checkout_asked_once() -> Callable[[Path], str]:
    """Caches the commit of the shipped policies, for which three Git commands run at each load: with several
    hundred sets of policies, a twentieth of what all tests cost. Other folders, such as repositories that a
    test makes, are asked about each time.
    """
    ask = files._commit
    once = cache(ask)

    def commit(path: Path) -> str:
        return once(path) if path.is_relative_to(SHIPPED) else ask(path)

    return commit
