"""`bayplan policies check` and `parameters` look at the ConfigMap too; other commands follow it offline."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.webhook.admission.configuration.test_parameters import SYSTEM, Json, config_map, pod
from webhook.cli.common.inputs import shipped
from webhook.cli.main import main

MANIFEST = str(shipped("manifests") / "38-parameters.yaml")
NODES = str(shipped("manifests") / "examples" / "clusters" / "two-zones.yaml")
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}


def written(folder: Path, *objects: Json) -> str:
    """A file with these objects."""
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


@pytest.mark.parametrize("words", [(MANIFEST,), (str(shipped("policies")), MANIFEST), ("-c", MANIFEST)])
def test_the_config_map_that_ships_is_well(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Alone, beside the policies, and as a file of the cluster."""
    assert main(["policies", "check", *words]) == 0
    assert "all well" in capsys.readouterr().out


@pytest.mark.parametrize("words", [(), ("-c",)])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"mode": "enfroce"}, "data[mode]: 'enfroce' is not valid; use enforce or warn or audit or off"),
        (
            {"kai_topology__queu": "x"},
            "data[kai-topology.queu]: there is no such parameter; is kai-topology.queue",
        ),
    ],
)
def test_check_tells_what_is_wrong_with_it(
    words: tuple[str, ...], data: Json, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With status 2, given alone and as a file of the cluster."""
    file = written(tmp_path, config_map(SYSTEM, **data))
    assert main(["policies", "check", *words, file]) == 2
    assert message in capsys.readouterr().err


def test_several_faults_are_separated_by_semicolons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error is one line; their line ends were shown as question marks."""
    file = written(tmp_path, config_map(SYSTEM, mode="enfroce", mod="audit"))
    assert main(["policies", "check", "-c", file]) == 2
    expected = f"is mode meant?; {SYSTEM}/ConfigMap/bayplan-parameters: data[mode]: 'enfroce' is not valid"
    assert expected in capsys.readouterr().err


def test_check_warns_of_a_namespace_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where Namespaces are given at all."""
    file = written(tmp_path, TEAM, config_map(SYSTEM, namespace__gone__mode="off"))
    assert main(["policies", "check", "-c", file]) == 0
    assert "Warning: namespace.gone.mode: there is no namespace gone" in capsys.readouterr().err


def test_parameters_shows_each_value_in_force_and_who_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cluster's over the file's, a namespace's over all."""
    data = {"mode": "audit", "namespace__ml__mode": "warn", "scheduler_name__name": "volcano"}
    file = written(tmp_path, config_map(SYSTEM, **data))

    def rows(*words: str) -> dict[str, tuple[str, str]]:
        assert main(["policies", "parameters", "-c", file, *words]) == 0
        lines = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
        return {key: (value, origin.strip()) for key, value, origin in lines}

    own = f"{SYSTEM}/ConfigMap/bayplan-parameters"
    assert rows()["mode"] == ("audit", own)
    assert rows()["scheduler-name.name"] == ("volcano", own)
    assert rows()["reserve.default"] == ("auto", "default")
    assert rows()["nccl-env.mnnvl"] == ("2", "ConfigMap/bayplan-parameters beside the policies")
    assert rows("-n", "ml")["mode"] == ("warn", own)
    assert rows("-n", "research")["mode"] == ("audit", own)


@pytest.mark.parametrize("command", ["mutate", "report"])
def test_a_command_follows_the_config_map_among_the_clusters_files(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over the file beside the policies that ship, which names every key."""
    (tmp_path / "pod").mkdir()
    manifest = written(tmp_path / "pod", pod("ml"))

    def output(**data: str) -> str:
        cluster = written(tmp_path, config_map(SYSTEM, **data))
        main([command, "-f", manifest, "-c", NODES, cluster, *(["--all"] if command == "report" else [])])
        return capsys.readouterr().out

    assert "cpu" in output()
    assert "cpu" in output(namespace__research__guaranteed_qos__enabled="false")
    assert "cpu" not in output(namespace__ml__guaranteed_qos__enabled="false")


@pytest.mark.parametrize("command", ["mutate", "report", "plan"])
def test_a_command_refuses_bad_settings_in_words(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2: bad input."""
    (tmp_path / "pod").mkdir()
    cluster = written(tmp_path, config_map(SYSTEM, mode="on"))
    manifest = written(tmp_path / "pod", pod("ml"))
    assert main([command, "-f", manifest, "-c", NODES, cluster]) == 2
    assert f"{SYSTEM}/ConfigMap/bayplan-parameters: data[mode]: 'on' is not" in capsys.readouterr().err
