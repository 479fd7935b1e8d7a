"""Fixtures: one control plane per run, and one set of nodes and one webhook per set of example clusters.

The tests are collected only if BAYPLAN_E2E is set, as `make e2e` does.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.e2e.binaries import ROOT, Missing, find
from tests.e2e.controlplane import ControlPlane, ExistingCluster, named_cluster
from tests.e2e.fleet import Fleet, namespace, objects_of
from tests.e2e.hook import Hook
from tests.e2e.kubectl import Kubectl
from tests.e2e.kubelet import Kubelet
from tests.e2e.real_kinds import SHARED, define, fetched
from tests.e2e.stage import NAMESPACES, Cluster, Site
from tests.manifests.examples import EXAMPLES

if not os.environ.get("BAYPLAN_E2E"):
    collect_ignore_glob = ["test_*.py"]

Needed = TypeVar("Needed")
SUPERPOD = ("superpod-32.yaml",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts the tests of a module by site, so that each site is set up once."""
    modules = {item.path: place for place, item in reversed(list(enumerate(items)))}
    items.sort(key=lambda item: (modules[item.path], _site(item)))


def _site(item: pytest.Item) -> str:
    spec = getattr(item, "callspec", None)
    return str(spec.params.get("site", "")) if spec is not None else ""


def or_exit(get: Callable[[], Needed]) -> Needed:
    """Returns what all tests need, or ends the run if it is not available."""
    try:
        return get()
    except Missing as error:
        pytest.exit(str(error), returncode=1)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running control plane with the kinds and namespaces of the examples."""
    kubeconfig = named_cluster()
    or_exit(fetched)
    folder = tmp_path_factory.mktemp("controlplane")
    if kubeconfig:
        plane: ControlPlane | ExistingCluster = ExistingCluster(kubeconfig)
        program = shutil.which("kubectl") or "kubectl"
    else:
        programs = or_exit(find)
        plane = ControlPlane(programs, folder)
        program = programs["kubectl"]
    plane.start()
    try:
        kubectl = Kubectl(program, plane.kubeconfig)
        define(kubectl, *SHARED)
        for name in NAMESPACES:
            namespace(plane.api, name)
        with Kubelet(plane.api) as kubelet:
            yield Cluster(plane.api, kubectl, kubelet)
    finally:
        plane.stop()


@pytest.fixture(scope="module")
def site(
    request: pytest.FixtureRequest, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """The example clusters of the parameter as nodes and pods, and a webhook that sees them."""
    with_policies = getattr(request, "param", (SUPERPOD, "default"))
    yield from make_site(cluster, tmp_path_factory, *with_policies)


def make_site(
    cluster: Cluster, folders: pytest.TempPathFactory, clusters: tuple[str, ...], policies: str
) -> Iterator[Site]:
    """Sets up and tears down nodes, pods, a file with the output of `kubectl get`, the webhook, and its
    configurations.
    """
    folder = folders.mktemp("site")
    fleet = Fleet(cluster.api)
    try:
        fleet.make(objects_of(clusters))
        hook = Hook(cluster.api, folder, folder / "cluster.yaml", policy_set(policies, folder))
        site = Site(cluster, fleet, hook)
        site.look()
        try:
            hook.start()
            hook.configure()
            yield site
            hook.unconfigure()
        finally:
            hook.stop()
    finally:
        fleet.remove()


def policy_set(name: str, folder: Path, source: Path = ROOT) -> tuple[str, ...]:
    """The shipped policies ("default"), or those of a tree for another scheduler, as the test's parameter
    says.
    """
    if name == "default":
        return ()
    copy = folder / "policies"
    shutil.copytree(source / "policies", copy)
    parameters = copy / "parameters.yaml"
    text = parameters.read_text()
    assert "scheduler-name.name: kai-scheduler" in text
    parameters.write_text(text.replace("scheduler-name.name: kai-scheduler", f"scheduler-name.name: {name}"))
    return (str(copy),)


@pytest.fixture
def clean(site: Site, request: pytest.FixtureRequest) -> Iterator[None]:
    """Before and after the test, only the PodGroups of its example are applied and nothing is reserved."""
    site.clear()
    example = request.node.callspec.params.get("example") if hasattr(request.node, "callspec") else None
    if example is not None:
        site.apply_groups(EXAMPLES / example.manifest)
    yield
    site.clear()
