"""The parameters that serve: read when they change, and the last good ones while the newest are bad."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.policies.helpers import policies, with_parameters
from tests.webhook.admission.configuration.test_parameters import SYSTEM, config_map
from tests.webhook.calls import EXAMPLES, Serve
from webhook.admission.environment import Environment
from webhook.cli.cluster_files.watched import ClusterFiles
from webhook.server import parameters_store
from webhook.server.parameters_store import ParametersStore

Json = dict[str, Any]


def mode(store: ParametersStore, configured: Json | None) -> str:
    """The mode of a namespace, with a ConfigMap in the cluster."""
    return store.in_force(Environment(configured=configured), policies()).settings("ml").mode


def test_a_bad_change_keeps_the_last_good_settings_and_a_good_one_is_taken() -> None:
    """No key of an invalid change takes effect, not even a valid one."""
    store = ParametersStore()
    assert mode(store, config_map(SYSTEM, mode="audit")) == "audit"
    assert mode(store, config_map(SYSTEM, mode="warn", reserve__default="rack")) == "audit"
    assert "data[reserve.default]: 'rack' is not valid" in store.problems[0]
    assert mode(store, config_map(SYSTEM, mode="warn")) == "warn"
    assert not store.problems


@pytest.mark.parametrize("emptied", [None, {**config_map(SYSTEM), "data": None}, config_map(SYSTEM)])
def test_a_config_map_that_is_deleted_or_emptied_gives_the_defaults(emptied: Json | None) -> None:
    """Nobody chooses any more; as it may be a slip, it is told until somebody chooses again."""
    store = ParametersStore()
    assert mode(store, emptied) == "enforce"
    assert store.current.warnings({}) == [], "nobody has chosen yet, as with the one that ships"
    assert mode(store, config_map(SYSTEM, mode="audit")) == "audit"
    assert mode(store, emptied) == "enforce"
    assert not store.problems
    (warning,) = store.current.warnings({})
    assert warning.startswith("ConfigMap bayplan-parameters had 1 key and ")
    assert warning.endswith("the file beside the policies, --mode and the defaults count")
    store.in_force(Environment(configured=emptied), with_parameters())
    assert store.current.warnings({}) == [warning], "also when policies are loaded anew"
    assert mode(store, config_map(SYSTEM, mode="audit")) == "audit"
    assert store.current.warnings({}) == []


def test_a_replica_that_starts_on_a_bad_config_map_keeps_to_what_is_right_in_it() -> None:
    """It has no last good one, and must not disturb namespaces that somebody chose to leave alone."""
    store = ParametersStore()
    assert mode(store, config_map(SYSTEM, mode="audit", reserve__default="rack")) == "audit"
    assert store.problems


def test_parameters_are_read_once_for_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each request."""
    reads = []
    read = parameters_store.read_parameters
    monkeypatch.setattr(
        parameters_store, "read_parameters", lambda *words: (reads.append(words), read(*words))[1]
    )
    store, first, second = ParametersStore(), config_map(SYSTEM, mode="warn"), config_map(SYSTEM, mode="off")
    assert [mode(store, configured) for configured in (first, first, second, second)] == [
        "warn",
        "warn",
        "off",
        "off",
    ]
    assert len(reads) == 2


async def test_readyz_and_metrics_say_what_is_in_force_and_what_is_wrong(
    serve: Serve, tmp_path: Path
) -> None:
    """While the server stays ready."""
    file = tmp_path / "cluster.yaml"

    def write(**data: str) -> None:
        nodes = (EXAMPLES / "clusters" / "two-zones.yaml").read_text()
        file.write_text(f"{nodes}\n---\n{yaml.safe_dump(config_map(SYSTEM, **data))}")

    write(mode="audit", reserve__default="nodes", namespace__gone__mode="off")
    cluster = ClusterFiles([str(file)])
    async with serve(cluster=cluster) as asked:
        readiness = await (await asked.client.get("/readyz")).json()
        settings = readiness["settings"]
        assert (settings["mode"], settings["reserve.default"], settings["reserve.whole-from"]) == (
            "audit",
            "nodes",
            "0.5",
        )
        assert settings["revision"].startswith("sha256:")
        assert settings["from"][-1] == "bayplan-system/ConfigMap/bayplan-parameters"
        assert not readiness["problems"]
        write(mode="enfroce")
        cluster.snapshot()
        answer = await asked.client.get("/readyz")
        readiness = await answer.json()
        assert answer.status == 200
        assert readiness["settings"] == settings
        assert "data[mode]: 'enfroce' is not valid; use enforce or warn" in readiness["problems"][0]
        metrics = await (await asked.client.get("/metrics")).text()
        assert "bayplan_reload_failed 1.0" in metrics
        assert f'revision="{settings["revision"]}"' in metrics
        write(mode="warn")
        cluster.snapshot()
        readiness = await (await asked.client.get("/readyz")).json()
        assert (readiness["settings"]["mode"], readiness["problems"]) == ("warn", [])
