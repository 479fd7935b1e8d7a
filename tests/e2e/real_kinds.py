"""The CRDs of other systems as they ship them, from their Go modules, each verified by a checksum.

So the API server of the tests rejects, defaults and drops the same fields as in a real cluster. Go fetches a
module once; the definitions are stored outside the checkout, in
${XDG_CACHE_HOME:-~/.cache}/bayplan/kinds-HASH, without the descriptions, which are most of their size and
have no effect. Only the stored version of each kind is served: conversion to the others needs the operators'
webhooks. KAI's module is not available through Go: `tests/e2e/crds` contains its kinds, with their fields and
validation. The modules of Volcano, Grove, NVIDIA's DRA driver (ComputeDomain) and NodeResourceTopology are
not available either; no test creates an object of those here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.binaries import ROOT, Missing
from tests.e2e.kubectl import Kubectl

WRITTEN = ROOT / "tests" / "e2e" / "crds"
"""The definitions that stand in the checkout."""


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module, its checksum as in go.sum, and the files of the definitions by RESOURCE.GROUP."""

    path: str
    version: str
    checksum: str
    files: dict[str, str]


_KUEUE = "config/components/crd/bases/kueue.x-k8s.io_{}.yaml"
_RAY = "config/crd/bases/ray.io_{}.yaml"
_TRAINING = "manifests/base/crds/kubeflow.org_{}.yaml"
MODULES = (
    Module(
        "sigs.k8s.io/jobset",
        "v0.12.0",
        "h1:YYPuV0px8Ongq/RXmJg6V0w2UC67aiR+rCMD06vhQQQ=",
        {"jobsets.jobset.x-k8s.io": "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"},
    ),
    Module(
        "sigs.k8s.io/lws",
        "v0.9.0",
        "h1:DcJCgxjjoGOx//QHZkeKpyiblxYq70aCRZNYSfykWyI=",
        {
            "leaderworkersets.leaderworkerset.x-k8s.io": "config/crd/bases/"
            "leaderworkerset.x-k8s.io_leaderworkersets.yaml"
        },
    ),
    Module(
        "github.com/kubeflow/training-operator",
        "v1.9.4",
        "h1:MjYXzeaHGBmF47BlhCo6+Mb7ypHrVfO6vsys1ZHF56A=",
        {
            f"{kind}.kubeflow.org": _TRAINING.format(kind)
            for kind in ("pytorchjobs", "tfjobs", "xgboostjobs", "jaxjobs", "paddlejobs")
        },
    ),
    Module(
        "github.com/kubeflow/mpi-operator",
        "v0.8.2",
        "h1:7PVtV31iX3LSVW0BqRQ64w/NYNfAgP86Bmua2OEi5lg=",
        {"mpijobs.kubeflow.org": "manifests/base/kubeflow.org_mpijobs.yaml"},
    ),
    Module(
        "github.com/ray-project/kuberay/ray-operator",
        "v1.6.0",
        "h1:1hs7Di2U/vm09ot7MIU8jUqEo7gHDc4gkbv1eFvqCsQ=",
        {f"{kind}.ray.io": _RAY.format(kind) for kind in ("rayclusters", "rayjobs", "rayservices")},
    ),
    Module(
        "github.com/kubeflow/trainer/v2",
        "v2.2.0",
        "h1:whChZckEtycLo1UKH/M0hiNaCUozbLvf9JrgmMv+TAg=",
        {"trainjobs.trainer.kubeflow.org": "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"},
    ),
    Module(
        "sigs.k8s.io/cluster-api",
        "v1.14.2",
        "h1:o3GFNaeNFAOEEMpDPfhCK+2CjmV6gtQ8yLEcUwCg7bA=",
        {
            "machinedeployments.cluster.x-k8s.io": "core/config/crd/bases/"
            "cluster.x-k8s.io_machinedeployments.yaml"
        },
    ),
    Module(
        "sigs.k8s.io/karpenter",
        "v1.2.0",
        "h1:y1zyFGzDLiT5OHpG8Jvj4JKKe/iXmJDYeejs8k8OznM=",
        {"nodepools.karpenter.sh": "pkg/apis/crds/karpenter.sh_nodepools.yaml"},
    ),
    Module(
        "sigs.k8s.io/kueue",
        "v0.19.0",
        "h1:5yCu85qsJhvUVVxE0Csw546DDBcRwUXpBEOmEFlws34=",
        {
            f"{kind}.kueue.x-k8s.io": _KUEUE.format(kind)
            for kind in ("workloads", "topologies", "resourceflavors", "clusterqueues", "localqueues")
        },
    ),
)
NAMES = {name for module in MODULES for name in module.files} | {path.stem for path in WRITTEN.glob("*.yaml")}
"""All kinds whose real definitions can be had, as RESOURCE.GROUP."""
SHARED = (
    "topologies.kai.scheduler",
    "podgroups.scheduling.run.ai",
    "reports.openreports.io",
    "jobsets.jobset.x-k8s.io",
    "leaderworkersets.leaderworkerset.x-k8s.io",
    "pytorchjobs.kubeflow.org",
    "mpijobs.kubeflow.org",
    "rayclusters.ray.io",
    "rayjobs.ray.io",
    "workloads.kueue.x-k8s.io",
)
"""What the control plane serves that most tests share. With Kueue's queues it would be Kueue's."""


def define(kubectl: Kubectl, *names: str) -> None:
    """Creates these definitions and waits until the kinds are served. Raises `Missing` or
    `AssertionError`.
    """
    home = fetched()
    written = {path.stem: path for path in WRITTEN.glob("*.yaml")}
    for name in names:
        path = written.get(name, home / f"{name}.json")
        # By the server: the last applied configuration of a client would be larger than an annotation may be.
        output = kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))
        assert output.status == 0, output.err
    kubectl.wait_for_kinds()


def fetched() -> Path:
    """The folder of the fetched definitions, which are fetched if it does not exist. Raises `Missing`."""
    text = Path(__file__).read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bayplan"
    home = cache / f"kinds-{hashlib.sha256(text).hexdigest()[:12]}"
    if home.is_dir():
        return home
    cache.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".kinds-", dir=cache))
    try:
        for module in MODULES:
            source = _module(module)
            for name, file in module.files.items():
                (work / f"{name}.json").write_text(json.dumps(definition((source / file).read_bytes())))
        work.chmod(0o755)
        try:
            work.rename(home)  # whole or not at all
        except OSError:
            if not home.is_dir():  # no other worker was first
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return home


def _module(module: Module) -> Path:
    name = f"{module.path}@{module.version}"
    try:
        done = subprocess.run(
            ["go", "mod", "download", "-json", name], capture_output=True, text=True, check=False, cwd="/"
        )
    except FileNotFoundError:
        raise Missing(f"Go is needed to fetch the definitions of {name}") from None
    if done.returncode:
        raise Missing(f"{name} could not be fetched: {(done.stdout + done.stderr).strip()[-2000:]}")
    answer = json.loads(done.stdout)
    if answer["Sum"] != module.checksum:
        raise Missing(f"{name} has the checksum {answer['Sum']}, not {module.checksum}")
    return Path(answer["Dir"])


def definition(text: bytes) -> Any:
    """A definition with its stored version only, without the descriptions."""
    body = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    spec = body["spec"]
    spec.pop("conversion", None)
    spec["versions"] = [version for version in spec["versions"] if version["storage"]]
    for version in spec["versions"]:
        _undescribed(version["schema"]["openAPIV3Schema"])
    return body


def _undescribed(schema: Any) -> None:
    """Removes the descriptions from a schema; a property that is named `description` stays."""
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("description"), str):
        del schema["description"]
    for properties in ("properties", "patternProperties", "definitions"):
        for part in schema.get(properties, {}).values():
            _undescribed(part)
    for key in ("items", "additionalProperties", "not"):
        _undescribed(schema.get(key))
    for key in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(key, ()):
            _undescribed(part)
