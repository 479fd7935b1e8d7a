"""The image that the Dockerfile makes, started with as little as the manifests give it."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.processes import free_port, start, wait_until
from tests.webhook.calls import example, review

ROOT = Path(__file__).parents[2]
IN_IMAGE = str(ROOT / ".ci" / "in-image")
PACKAGES = "import importlib.metadata as m; print(*(f'{d.name}=={d.version}' for d in m.distributions()))"
CLUSTER = "/tmp/manifests/examples/clusters/superpod-32.yaml"


def run(root: str, *command: str) -> subprocess.CompletedProcess[str]:
    """A command in the image, to its end."""
    return subprocess.run(
        [IN_IMAGE, root, *command], capture_output=True, text=True, check=False, timeout=120
    )


def test_it_is_nobody_and_writes_nothing_but_tmp(root: str) -> None:
    """No user of its own, no capability, no way to one."""
    done = run(root, "sh", "-c", "id -u; grep CapEff /proc/self/status; touch /tmp/a /opt/bayplan/a /a")
    assert done.stdout.split() == ["65532", "CapEff:", "0" * 16]
    denied = re.findall(r"cannot touch '([^']*)': Read-only file system", done.stderr)
    assert denied == ["/opt/bayplan/a", "/a"], done.stderr


def test_it_holds_what_the_lock_names_and_no_more(root: str) -> None:
    """Of which the SBOM is made; and Bayplan itself. No pip is left in it."""
    done = run(root, "/opt/bayplan/bin/python", "-c", PACKAGES)
    installed = {name.lower().replace("_", "-") for name in done.stdout.split()}
    lock = (ROOT / "locks" / "image.txt").read_text()
    locked = set(re.findall(r"^([a-z0-9_.-]+==[^ ]+)", lock, re.MULTILINE))
    version = run(root, "bayplan", "--version").stdout.replace(" ", "==").strip()
    assert installed == {*locked, version}, done.stderr


def test_it_gets_ready_and_plans_a_gang(root: str, tmp_path: Path) -> None:
    """On the policies that lie in it."""
    with serving(root, tmp_path) as port:
        body = json.dumps(review(example("job-six-nodes-one-rack"))).encode()
        call = urllib.request.Request(f"http://127.0.0.1:{port}/mutate", body)
        call.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(call, timeout=60) as answer:
            response = json.loads(answer.read())["response"]
    assert response["allowed"], response
    written = json.loads(base64.b64decode(response["patch"]))
    assert any("topology" in json.dumps(operation) for operation in written), written


@contextmanager
def serving(root: str, folder: Path) -> Iterator[int]:
    """The port of a webhook in the image that is ready."""
    port, probes = free_port(), free_port()
    ports = f"--port={port} --probe-port={probes} --insecure"
    serve = f"{ports} -p=/policies -c {CLUSTER} --ledger /tmp/ledger --drain=1"
    script = f"bayplan unpack /tmp && exec bayplan serve {serve}"
    process = start("image", [IN_IMAGE, root, "sh", "-c", script], folder)
    try:
        wait_until(lambda: is_ready(probes), f"the webhook to be ready: {process.tail()}", 120, pause=0.5)
        yield port
    finally:
        process.stop()
    assert not is_ready(probes), "the webhook ends with the program that started it"


def is_ready(port: int) -> bool:
    """Whether /readyz says so."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
