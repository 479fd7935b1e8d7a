"""The image's recipe and the git-sync component: what they name is there, and nothing runs as root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
COMPONENT = ROOT / "manifests" / "components" / "git-sync"
DEPLOYMENT = ROOT / "manifests" / "40-deployment.yaml"


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, comments left out."""
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    rows = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    return [(word, rest) for word, rest in rows]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, from its FROM on."""
    found: list[list[tuple[str, str]]] = []
    for row in instructions():
        if row[0] == "FROM":
            found.append([])
        found[-1].append(row)
    return found


def copied() -> set[str]:
    """What is copied from the checkout."""
    rows = [rest.split() for word, rest in instructions() if word == "COPY" and "--from=" not in rest]
    return {source for row in rows for source in row[:-1]}


def webhook_pod() -> Any:
    """The pod template of our Deployment."""
    found = yaml.safe_load_all(DEPLOYMENT.read_text())
    return next(one for one in found if one["kind"] == "Deployment")["spec"]["template"]["spec"]


def test_everything_that_is_copied_is_there_and_not_ignored() -> None:
    """And .dockerignore lets in just that."""
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"}
    assert copied() == let_in
    assert all((ROOT / source).exists() for source in copied())


def test_everything_that_the_package_is_made_of_is_copied() -> None:
    """Packages, shipped folders, licence and readme of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    about = project["project"]
    needed = {*wheel["packages"], *wheel["force-include"], about["readme"], *about["license-files"]}
    assert needed <= copied()


def test_the_image_runs_bayplan_as_the_user_of_the_deployment() -> None:
    """A number, so that the kubelet can see that it is not root."""
    last = dict(stages()[-1])
    assert json.loads(last["ENTRYPOINT"]) == ["bayplan"]
    security = webhook_pod()["securityContext"]
    assert last["USER"] == f"{security['runAsUser']}:{security['runAsGroup']}" != "0:0"


def test_versions_are_pinned_and_tools_stay_behind() -> None:
    """Nothing is installed in the last stage; no base image is `latest`."""
    build, last = stages()
    (install,) = [rest for word, rest in build if word == "RUN" and " install " in rest]
    assert "--constraint constraints.txt" in install
    assert not [rest for word, rest in last if word in ("RUN", "ADD")]
    bases = [stage[0][1].split()[0] for stage in (build, last)]
    assert all(":" in base and not base.endswith(":latest") for base in bases)
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert all(wanted.removeprefix(">=") in base for base in bases)


def test_the_container_may_not_write_its_file_system() -> None:
    """What it must write lies in mounted volumes."""
    security = webhook_pod()["containers"][0]["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False


def test_git_sync_writes_where_the_webhook_reads() -> None:
    """One volume at the path of -p; the sidecar is started first and held to the same restrictions."""
    patch = yaml.safe_load((COMPONENT / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    (sidecar,) = patch["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["securityContext"] == webhook_pod()["containers"][0]["securityContext"]
    (mount,) = patch["containers"][0]["volumeMounts"]
    assert mount["readOnly"]
    assert f"-p={mount['mountPath']}" in webhook_pod()["containers"][0]["args"]
    assert f"--root={mount['mountPath']}" in sidecar["args"]
    written = {one["name"]: one["mountPath"] for one in sidecar["volumeMounts"]}
    assert written[mount["name"]] == mount["mountPath"]
    assert set(written) == {volume["name"] for volume in patch["volumes"]}


def test_both_components_go_together(tmp_path: Path) -> None:
    """kustomize merges them, and the sidecar stands in the Deployment with every volume that it mounts."""
    kubectl = shutil.which("kubectl")
    if not kubectl:
        return
    relative = os.path.relpath(ROOT / "manifests", tmp_path)
    names = ", ".join(f"{relative}/components/{name}" for name in ("cert-manager", "git-sync"))
    (tmp_path / "kustomization.yaml").write_text(f"resources: [{relative}]\ncomponents: [{names}]\n")
    done = subprocess.run([kubectl, "kustomize", str(tmp_path)], capture_output=True, text=True, check=True)
    spec = next(one for one in yaml.safe_load_all(done.stdout) if one["kind"] == "Deployment")["spec"]
    pod = spec["template"]["spec"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in (*pod["initContainers"], *pod["containers"]):
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    assert "git-sync" in {container["name"] for container in pod["initContainers"]}
