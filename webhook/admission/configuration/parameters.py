"""Merges the parameters in the files beside the policies and those in the cluster. Pure.

The ConfigMap `bayplan-parameters` contains the parameters of policies and Bayplan's own settings. There may
be one in a file beside the policies, and one in the cluster, in Bayplan's own namespace. The value of a key
is taken from the first of these that has it: the cluster's ConfigMap, the chosen pack
(`webhook.policy.model.packs`), the file, the default. A key for one namespace (`namespace.NAME.KEY`) takes
precedence over the key for all namespaces. ConfigMaps of that name in other namespaces are ignored, so that
no tenant configures the cluster.
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
"""Maximum number of problems that are reported: nobody reads thousands of them, and each hint costs time."""


MOST_COMPARED, NEAR = 200, 0.8
"""`MOST_COMPARED`: maximum number of unknown keys that are compared with the keys of settings, about 50 µs
each. `NEAR`: the minimum similarity (`difflib` ratio) at which a key counts as misspelt."""


@dataclass(frozen=True, slots=True)
class Source:
    """The data of one source of parameters. `where`: the name of the source in messages."""

    where: str
    data: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of all sources, read once for each change of a source.

    `texts`: the valid parameters as text. `sources`: the one with the lowest precedence first. `revision`: a
    hash of the valid parameters, "" if there is no source. `misspelt`: warnings about unknown keys that are
    similar to those of settings; none if the schema of policy parameters is closed, because such keys are
    errors then. `emptied`: a warning that the cluster's ConfigMap has lost all its keys, "" if it has not.
    """

    texts: Texts
    sources: tuple[Source, ...] = ()
    revision: str = ""
    misspelt: tuple[str, ...] = ()
    emptied: str = ""
    # Caches by namespace, filled on demand because thousands of namespaces may have keys of their own.
    # `_settings` has pairs: the settings from which the result was computed, and the result.
    _objects: dict[str, Json] = field(default_factory=dict, compare=False, repr=False)
    _settings: dict[str, tuple[Settings, Settings]] = field(default_factory=dict, compare=False, repr=False)

    def settings(self, chosen: Callable[[str], Settings], namespace: str) -> Settings:
        """Returns the settings of a namespace: those that `chosen` returns, overridden by these
        parameters.
        """
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
        """Returns the key of the caches: the namespace, or "" for all namespaces without keys of their
        own.
        """
        return namespace if namespace in self.texts.scoped else ""

    def object(self, namespace: str) -> Json | None:
        """Returns the ConfigMap that policies get for a request in a namespace; None if there is no source.

        It has no `metadata.namespace`, so it can be the same for all namespaces without keys of their own.
        """
        if not self.sources:
            return None
        key = self._key(namespace)
        if key not in self._objects:
            head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PARAMETERS}}
            self._objects[key] = {**head, "data": self.texts.of(key)}
        return self._objects[key]

    def in_force(self, settings: Settings, namespaces: Mapping[str, Json]) -> dict[str, Any]:
        """Returns what is in force, to be shown to people: the settings of a namespace without keys of its
        own as text, the revision, the sources, and warnings. `namespaces`: the existing ones, by name.
        """
        return {
            **{name: row.show(settings) for name, row in SETTING_KEYS.items()},
            "revision": self.revision,
            "from": [source.where for source in self.sources],
            "warnings": self.warnings(namespaces),
        }

    def warnings(self, namespaces: Mapping[str, Json]) -> list[str]:
        """Returns warnings about parameters that are valid but have no effect: keys for namespaces that do
        not exist, modes for namespaces that have the mode label, misspelt keys, and an emptied ConfigMap.
        """
        emptied = [self.emptied] if self.emptied else []
        if not namespaces:  # without a cluster, no namespaces are known
            return [*emptied, *self.misspelt]
        odd = (self._warning_of(name, namespaces.get(name)) for name in sorted(self.texts.scoped))
        return [*emptied, *self.misspelt, *islice(filter(None, odd), MOST_TOLD)]

    def _warning_of(self, name: str, namespace: Json | None) -> str:
        own = self.texts.scoped[name]
        if namespace is None:
            return f"namespace.{name}.{min(own)}: there is no namespace {name}"
        label = mode_label(namespace)
        if label is None or own.get("mode") in (None, label):
            return ""
        return f"namespace.{name}.mode: has no effect, the namespace has the label {MODE}: {label}"

    def origin(self, key: str) -> str:
        """Returns the name of the source from which a key (KEY or namespace.NAME.KEY) is taken; "" for
        none.
        """
        return next((source.where for source in reversed(self.sources) if key in source.data), "")


NO_PARAMETERS = Parameters(Texts({}, {}))


def read_parameters(policies: PolicySet, configured: Json | None) -> tuple[Parameters, tuple[str, ...]]:
    """Returns the parameters of the policy files, overridden by the cluster's ConfigMap, and the problems of
    both as text.

    `configured`: the cluster's ConfigMap, None for none. An invalid value of a setting is ignored: the next
    source that has the key counts. An invalid value of a policy's parameter is kept, because the policy
    itself reports it.
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
    """Yields warnings about unknown keys that are similar to the key of a setting. Such a key is not an
    error, because it may be a parameter of a policy without a schema."""
    names = ((key, scope(key)[1]) for key, _ in entries)
    unknown = (row for row in names if row[1] not in SETTING_KEYS and row[1] not in rules.by_key)
    for key, name in islice(() if rules.closed else unknown, MOST_COMPARED):
        for near in difflib.get_close_matches(name, SETTING_KEYS, 1, NEAR):
            yield f"{key}: is no setting; is {near} meant?"


def _problems(entries: Iterable[tuple[Source, str, str]], rules: ParameterRules) -> tuple[str, ...]:
    """Returns text for the first `MOST_TOLD` problems, and for the number of further ones."""
    wrong = [row for row in entries if _setting_fault(*row[1:]) or rules.fault(*row[1:], hint=False)]
    problems = [
        f"{source.where}: data[{key}]: {_setting_fault(key, text) or rules.fault(key, text)}"
        for source, key, text in wrong[:MOST_TOLD]
    ]
    rest_words = [f"and {len(wrong) - len(problems)} more"] if len(wrong) > len(problems) else []
    return (*problems, *rest_words)


def _setting_fault(key: str, text: str) -> str:
    """Returns what is wrong with a setting; "" for a valid setting, and for a key that is no setting."""
    namespace, name = scope(key)
    row = SETTING_KEYS.get(name)
    if row is None:
        return ""
    if namespace and row.of_cluster:
        return f"applies to the cluster's nodes, not to a namespace; use {name}"
    return scope_fault(key) or row.fault(text)


def _namespace(obj: Json) -> str:
    metadata = obj.get("metadata")
    return str(metadata.get("namespace") or "") if isinstance(metadata, Mapping) else ""
