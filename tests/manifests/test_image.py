"""The image's recipe and the git-sync component: what they name is there, and nothing runs as root."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
COMPONENT = ROOT / "manifests" / "components" / "git-sync"
DEPLOYMENT = ROOT / "manifests" / "40-deployment.yaml"


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, comments left out."""
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    rows = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    return [(word, rest) for word, rest in rows]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, from its FROM on; arguments given before any stand for themselves."""
    by_stage: list[list[tuple[str, str]]] = []
    arguments: dict[str, str] = {}
    for word, rest in instructions():
        if word == "ARG" and not by_stage:
            name, _, value = rest.partition("=")
            arguments[f"${{{name}}}"] = value
            continue
        if word == "FROM":
            by_stage.append([])
            rest = " ".join(arguments.get(part, part) for part in rest.split())
        by_stage[-1].append((word, rest))
    return by_stage


def pinned(lock: str) -> dict[str, str]:
    """The versions in a lock, by name; each has the hashes of its files."""
    lines = (ROOT / "locks" / lock).read_text().replace("\\\n", " ").splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    assert all(any(part.startswith("--hash=sha256:") for part in row) for row in rows)
    return dict(row[0].split("==") for row in rows)


def normal(name: str) -> str:
    """The name of a distribution as locks spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(*roots: str, extra: str = "") -> set[str]:
    """The distributions that these need here, themselves included."""
    wanted, seen = list(roots), set[str]()
    while wanted:
        distribution = wanted.pop()
        seen.add(normal(distribution))
        needs = [Requirement(row) for row in metadata.requires(distribution) or []]
        applicable = [need for need in needs if not need.marker or need.marker.evaluate({"extra": extra})]
        wanted += [need.name for need in applicable if normal(need.name) not in seen]
    return seen


def copied() -> set[str]:
    """What is copied from the checkout."""
    rows = [rest.split() for word, rest in instructions() if word == "COPY" and "--from=" not in rest]
    return {source for row in rows for source in row[:-1]}


def webhook_pod() -> Any:
    """The pod template of our Deployment."""
    bodies = yaml.safe_load_all(DEPLOYMENT.read_text())
    return next(body for body in bodies if body["kind"] == "Deployment")["spec"]["template"]["spec"]


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
    parts = {*wheel["packages"], *wheel["force-include"], about["readme"], *about["license-files"]}
    assert parts <= copied()


def test_the_image_runs_bayplan_as_the_user_of_the_deployment() -> None:
    """A number, so that the kubelet can see that it is not root."""
    last = dict(stages()[-1])
    assert json.loads(last["ENTRYPOINT"]) == ["bayplan"]
    security = webhook_pod()["securityContext"]
    assert last["USER"] == f"{security['runAsUser']}:{security['runAsGroup']}" != "0:0"


def test_versions_are_pinned_and_tools_stay_behind() -> None:
    """Nothing is installed in the last stage; no base image is `latest`."""
    build, last = stages()
    commands = [part for word, rest in build if word == "RUN" for part in rest.split(" && ")]
    installs = [command for command in commands if " install " in command]
    assert len(installs) == 3
    assert all("--require-hashes" in command or "--no-index" in command for command in installs)
    assert not [rest for word, rest in last if word in ("RUN", "ADD")]
    bases = [stage[0][1].split()[0] for stage in (build, last)]
    assert all(re.fullmatch(r"python:[0-9.]+-slim@sha256:[0-9a-f]{64}", base) for base in bases)
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert all(wanted.removeprefix(">=") in base for base in bases)


def test_the_build_backend_is_pinned_with_all_that_it_needs() -> None:
    """The build takes it from its lock and fetches no other, in no isolated build; so does `make`."""
    (backend,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    name = re.split("[>=<~]", backend)[0]
    (build,) = [rest for word, rest in instructions() if word == "RUN" and "pip wheel" in rest]
    assert "--no-build-isolation" in build
    assert needed(name) <= set(pinned("build.txt"))
    assert needed(name) <= set(pinned("dev.txt"))


LEFT_OUT = {"pendulum", "jmespath"}
"""What cel-python asks for and only its own code uses, of which nothing is run."""


def test_the_image_has_what_is_needed_and_no_more() -> None:
    """No tool of [dev], and nothing that no code of ours runs; the versions are those that are tested."""
    ours, tested = pinned("image.txt"), pinned("dev.txt")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    runs = needed(*(Requirement(row).name for row in project["dependencies"]))
    tools = {normal(Requirement(row).name) for row in project["optional-dependencies"]["dev"]}
    assert set(ours) - {"colorama"} == runs - LEFT_OUT
    assert not set(ours) & tools
    assert ours.items() <= tested.items()


def test_nothing_needs_what_the_image_leaves_out() -> None:
    """A manifest is mutated by the shipped policies where neither library can be imported."""
    manifest = ROOT / "manifests" / "examples" / "job-without-resources.yaml"
    lines = (
        "import sys",
        *(f"sys.modules[{name!r}] = None" for name in sorted(LEFT_OUT)),
        "from webhook.cli.main import main",
        f"sys.exit(main(['mutate', '-f', {str(manifest)!r}, '-o', 'patch']))",
    )
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_no_lock_names_where_its_files_come_from() -> None:
    """That is the machine's to say; the hashes hold wherever it is."""
    assert not [path for path in (ROOT / "locks").iterdir() if "://" in path.read_text()]


def test_provenance_tells_the_files_the_commit_and_the_locks(tmp_path: Path) -> None:
    """An in-toto statement whose digests are those of the files."""
    wheel = tmp_path / "bayplan-0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    command = [sys.executable, str(ROOT / ".ci" / "provenance"), str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    statement = json.loads(done.stdout)
    (subject,) = statement["subject"]
    assert subject == {"name": wheel.name, "digest": {"sha256": hashlib.sha256(b"wheel").hexdigest()}}
    source, *locks = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert source["digest"]["gitCommit"] == head.stdout.strip()
    for lock in locks:
        assert lock["digest"]["sha256"] == hashlib.sha256((ROOT / lock["uri"]).read_bytes()).hexdigest()


def test_the_user_of_the_image_has_a_home_that_can_be_written() -> None:
    """A uid without an entry in /etc/passwd has none of its own, and / is read-only."""
    (environment,) = [rest for word, rest in stages()[-1] if word == "ENV"]
    home = dict(assignment.split("=", 1) for assignment in environment.split())["HOME"]
    assert home in {mount["mountPath"] for mount in webhook_pod()["containers"][0]["volumeMounts"]}


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
    assert webhook_pod()["containers"][0]["securityContext"].items() <= sidecar["securityContext"].items()
    assert sidecar["securityContext"]["runAsUser"] != 0
    (mount,) = patch["containers"][0]["volumeMounts"]
    assert mount["readOnly"]
    assert f"-p={mount['mountPath']}" in webhook_pod()["containers"][0]["args"]
    assert f"--root={mount['mountPath']}" in sidecar["args"]
    written = {volume_mount["name"]: volume_mount["mountPath"] for volume_mount in sidecar["volumeMounts"]}
    assert written[mount["name"]] == mount["mountPath"]
    assert set(written) == {volume["name"] for volume in patch["volumes"]}


def kustomized(folder: Path, kustomization: str) -> Any:
    """The pod of the Deployment that kustomize makes, None without kubectl."""
    kubectl = shutil.which("kubectl")
    if not kubectl:
        return None
    (folder / "kustomization.yaml").write_text(kustomization)
    done = subprocess.run([kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    bodies = yaml.safe_load_all(done.stdout)
    return next(body for body in bodies if body["kind"] == "Deployment")["spec"]["template"]["spec"]


def test_both_components_go_together(tmp_path: Path) -> None:
    """kustomize merges them, and the sidecar stands in the Deployment with every volume that it mounts."""
    relative = os.path.relpath(ROOT / "manifests", tmp_path)
    names = ", ".join(f"{relative}/components/{name}" for name in ("cert-manager", "git-sync"))
    pod = kustomized(tmp_path, f"resources: [{relative}]\ncomponents: [{names}]\n")
    if pod is None:
        return
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in (*pod["initContainers"], *pod["containers"]):
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    assert "git-sync" in {container["name"] for container in pod["initContainers"]}


def test_the_pages_kustomization_names_repository_images_and_token(tmp_path: Path) -> None:
    """What docs/git-sync.md tells to write is what kustomize takes, and it loses none of the component."""
    page = (ROOT / "docs" / "git-sync.md").read_text()
    (block,) = re.findall(r"```yaml\n(resources: .*?)```", page, re.DOTALL)
    pod = kustomized(
        tmp_path, block.replace("bayplan/manifests", os.path.relpath(ROOT / "manifests", tmp_path))
    )
    if pod is None:
        return
    (sidecar,) = pod["initContainers"]
    variables = {row["name"]: row["value"] for row in sidecar["env"]}
    assert {"GITSYNC_REPO", "GITSYNC_REF", "GITSYNC_USERNAME", "GITSYNC_PASSWORD_FILE"} <= set(variables)
    mounts = {mount["mountPath"] for mount in sidecar["volumeMounts"]}
    assert {str(Path(variables["GITSYNC_PASSWORD_FILE"]).parent), "/policies", "/tmp"} <= mounts
    images = [container["image"] for container in (*pod["initContainers"], *pod["containers"])]
    assert all(image.startswith("registry.example.com/") for image in images)
