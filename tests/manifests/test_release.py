"""The release's folder is an OCI image layout: a registry takes the chart and the files from it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A chart as `helm package` makes it and another file, laid out."""
    chart = tmp_path / "bayplan-chart-0.1.0.tgz"
    with tarfile.open(chart, "w:gz") as archive:
        archive.add(ROOT / "manifests" / "chart", "bayplan")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n")
    subprocess.run([sys.executable, ROOT / ".ci" / "oci-layout", tmp_path, chart], check=True)
    return tmp_path


def blob(folder: Path, descriptor: Any) -> bytes:
    """What a descriptor describes, which is as long as it says and has its digest."""
    algorithm, digest = descriptor["digest"].split(":")
    data = (folder / "blobs" / algorithm / digest).read_bytes()
    assert (hashlib.sha256(data).hexdigest(), len(data)) == (digest, descriptor["size"])
    return data


def manifests(folder: Path) -> dict[str, Any]:
    """The manifests of the index, by their tags."""
    assert json.loads((folder / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((folder / "index.json").read_text())
    return {
        descriptor["annotations"]["org.opencontainers.image.ref.name"]: json.loads(blob(folder, descriptor))
        for descriptor in index["manifests"]
    }


def test_the_chart_is_in_it_as_helm_pushes_it(folder: Path) -> None:
    """Chart.yaml is the configuration, the package its one layer; both with Helm's own media types."""
    chart = manifests(folder)["0.1.0"]
    assert chart["config"]["mediaType"] == "application/vnd.cncf.helm.config.v1+json"
    assert json.loads(blob(folder, chart["config"]))["name"] == "bayplan"
    (layer,) = chart["layers"]
    assert layer["mediaType"] == "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
    assert blob(folder, layer) == (folder / "bayplan-chart-0.1.0.tgz").read_bytes()


def test_every_file_is_in_it_by_its_name(folder: Path) -> None:
    """As one artifact, which the tools of registries write out again."""
    layers = manifests(folder)["0.1.0-files"]["layers"]
    files = {layer["annotations"]["org.opencontainers.image.title"]: blob(folder, layer) for layer in layers}
    assert files == {
        name: (folder / name).read_bytes() for name in ("CHANGELOG.md", "bayplan-chart-0.1.0.tgz")
    }
