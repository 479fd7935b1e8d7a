"""The parameters in force: those of the files beside the policies, and over them the cluster's. Pure.

One ConfigMap, `bayplan-parameters`, says what policies may be told and what Bayplan's own settings are. It
lies beside the policies, and in the cluster in Bayplan's own namespace: a key counts as the cluster has it,
else as the pack that is chosen sets it, else as the file has it, else it has its default; and a key for one
namespace (`namespace.NAME.KEY`) before one for all. An object of that name in any other namespace says
nothing: no tenant chooses for the cluster.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from webhook.admission.configuration.setting_keys import SETTING_KEYS
from webhook.admission.configuration.settings import Settings, mode_label
from webhook.policy.model.packs import PACK, PACKS
from webhook.policy.model.parameters import (
    PARAMETERS,
    ParameterRules,
    Texts,
    data_of,
    is_parameters,
    scope,
    scope_fault,
    texts,
)
from webhook.policy.model.policy import PolicySet
from webhook.workloads.options import MODE

Json = Mapping[str, Any]


MOST_TOLD = 10
"""Problems that are told; of ten thousand wrong keys nobody reads more, and each hint takes time."""


MOST_COMPARED, NEAR = 200, 0.8
"""Unknown keys that are compared with those of settings, each in some 50 us, and how like they must be."""


@dataclass(frozen=True, slots=True)
class Source:
    """A ConfigMap with parameters, as text; `where` names it for people."""

    where: str
    data: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Parameters:
    """What all sources say together, read once for each change of one of them.

    `sources`: the lowest first. `revision`: a hash of the content, "" where there is no source. `misspelt`:
    warnings of unknown keys that are nearly settings, where no schema says which keys there are. `emptied`:
    that the cluster's ConfigMap has lost all its keys, in words, "" where it has not.
    """

    texts: Texts
    sources: tuple[Source, ...] = ()
    revision: str = ""
    misspelt: tuple[str, ...] = ()
    emptied: str = ""
    # By namespace, made when a request of it comes: thousands may have keys of their own. Settings with those
    # that they were made of.
    _objects: dict[str, Json] = field(default_factory=dict, compare=False, repr=False)
    _settings: dict[str, tuple[Settings, Settings]] = field(default_factory=dict, compare=False, repr=False)

    def settings(self, chosen: Callable[[str], Settings], namespace: str) -> Settings:
        """The settings of a namespace: these parameters over what was `chosen` without them."""
        without, key = chosen(namespace), self._key(namespace)
        remembered = self._settings.get(key)
        if remembered is None or remembered[0] is not without:
            remembered = self._settings[key] = without, self._over(without, self.texts.scoped.get(key, {}))
        return remembered[1]

    def _over(self, settings: Settings, own: Mapping[str, str]) -> Settings:
        for name, row in SETTING_KEYS.items():
            text = own.get(name, self.texts.everywhere.get(name))
            if text is not None:
                settings = row.take(settings, text)
        return settings

    def _key(self, namespace: str) -> str:
        """The namespace, "" for all that have no keys of their own."""
        return namespace if namespace in self.texts.scoped else ""

    def object(self, namespace: str) -> Json | None:
        """The ConfigMap that policies see in a request of a namespace; None where there is no source.

        It names no namespace, and so serves every one.
        """
        if not self.sources:
            return None
        key = self._key(namespace)
        if key not in self._objects:
            head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PARAMETERS}}
            self._objects[key] = {**head, "data": self.texts.of(key)}
        return self._objects[key]

    def in_force(self, settings: Settings, namespaces: Mapping[str, Json]) -> dict[str, Any]:
        """What is in force, for people: the settings of a namespace without keys of its own, where they are
        from, and what is odd about them. `namespaces`: those that there are."""
        return {
            **{name: row.show(settings) for name, row in SETTING_KEYS.items()},
            "revision": self.revision,
            "from": [source.where for source in self.sources],
            "warnings": self.warnings(namespaces),
        }

    def warnings(self, namespaces: Mapping[str, Json]) -> list[str]:
        """What has no effect, though nothing is wrong with it: keys of namespaces that do not exist, modes of
        namespaces that say theirs by a label, keys that are nearly settings, and a ConfigMap that says
        nothing any more."""
        emptied = [self.emptied] if self.emptied else []
        if not namespaces:  # without a cluster none is known
            return [*emptied, *self.misspelt]
        odd = (self._odd(name, namespaces.get(name)) for name in sorted(self.texts.scoped))
        return [*emptied, *self.misspelt, *islice(filter(None, odd), MOST_TOLD)]

    def _odd(self, name: str, namespace: Json | None) -> str:
        own = self.texts.scoped[name]
        if namespace is None:
            return f"namespace.{name}.{min(own)}: there is no namespace {name}"
        label = mode_label(namespace)
        if label is None or own.get("mode") in (None, label):
            return ""
        return f"namespace.{name}.mode: has no effect, the namespace has the label {MODE}: {label}"

    def origin(self, key: str) -> str:
        """The source that says what a key (with its namespace, where it has one) is; "" where none does."""
        return next((source.where for source in reversed(self.sources) if key in source.data), "")


NO_PARAMETERS = Parameters(Texts({}, {}))


def read_parameters(policies: PolicySet, configured: Json | None) -> tuple[Parameters, tuple[str, ...]]:
    """The parameters beside the policies and over them the cluster's ConfigMap, and what is wrong with them.

    A setting that is wrong is left out; a wrong parameter of a policy stays, and the policy says so.
    """
    beside = sorted((obj for obj in policies.params if is_parameters(obj)), key=_namespace)
    sources = [Source(f"ConfigMap/{PARAMETERS} beside the policies", data_of(obj)) for obj in beside]
    packs = [source.data[PACK] for source in sources if PACK in source.data]
    if configured is not None and PACK in data_of(configured):
        packs.append(data_of(configured)[PACK])
    if packs and PACKS.get(packs[-1]):
        sources.append(Source(f"pack {packs[-1]}", PACKS[packs[-1]]))
    if configured is not None:
        where = "/".join(filter(None, (_namespace(configured), "ConfigMap", PARAMETERS)))
        sources.append(Source(where, data_of(configured)))
    if not sources:
        return NO_PARAMETERS, ()
    entries = [(source, key, text) for source in sources for key, text in source.data.items()]
    kept = [(key, text) for _, key, text in entries if not _setting_fault(key, text)]
    digest = hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:12]
    misspelt = tuple(_misspelt(kept, policies.rules))
    parameters = Parameters(texts(kept), tuple(sources), f"sha256:{digest}", misspelt)
    written = [(source, key, text) for source, key, text in entries if not source.where.startswith("pack ")]
    return parameters, _problems(written, policies.rules)


def _misspelt(entries: Iterable[tuple[str, str]], rules: ParameterRules) -> Iterator[str]:
    """Warnings of keys that may be those of policies that nobody described, or settings written wrong."""
    names = ((key, scope(key)[1]) for key, _ in entries)
    unknown = (row for row in names if row[1] not in SETTING_KEYS and row[1] not in rules.by_key)
    for key, name in islice(() if rules.closed else unknown, MOST_COMPARED):
        for near in difflib.get_close_matches(name, SETTING_KEYS, 1, NEAR):
            yield f"{key}: is no setting; is {near} meant?"


def _problems(entries: Iterable[tuple[Source, str, str]], rules: ParameterRules) -> tuple[str, ...]:
    """The first problems in words, and how many more there are."""
    wrong = [row for row in entries if _setting_fault(*row[1:]) or rules.fault(*row[1:], hint=False)]
    problems = [
        f"{source.where}: data[{key}]: {_setting_fault(key, text) or rules.fault(key, text)}"
        for source, key, text in wrong[:MOST_TOLD]
    ]
    rest_words = [f"and {len(wrong) - len(problems)} more"] if len(wrong) > len(problems) else []
    return (*problems, *rest_words)


def _setting_fault(key: str, text: str) -> str:
    """What is wrong with a setting, "" where nothing is, or where the key is no setting."""
    namespace, name = scope(key)
    row = SETTING_KEYS.get(name)
    if row is None:
        return ""
    if namespace and row.of_cluster:
        return f"tells of the cluster's nodes, and of those of no single namespace; use {name}"
    return scope_fault(key) or row.fault(text)


def _namespace(obj: Json) -> str:
    metadata = obj.get("metadata")
    return str(metadata.get("namespace") or "") if isinstance(metadata, Mapping) else ""
