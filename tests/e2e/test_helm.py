"""Helm installs, upgrades, rolls back and removes the chart in a cluster; meanwhile nothing is blocked.

No replica ever responds, which is the worst case for the user who installs it. The replicas' pods are
simulated, so that the Deployment becomes ready and rolls. The tests follow the life of a release.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from certs.authority import bundle_pem, new_authority
from tests.e2e.api import ApiError, Json
from tests.e2e.configured import CONFIGURATIONS
from tests.e2e.controlplane import exists
from tests.e2e.fleet import Fleet, namespace
from tests.e2e.helm import CHART, RELEASE, Helm, helm_program
from tests.e2e.kubelet import STRATEGIC
from tests.e2e.processes import wait_until
from tests.e2e.replicas import nodes
from tests.e2e.rollout import SECRET, SYSTEM, Load
from tests.e2e.stage import Cluster
from webhook.cli.main import main
from webhook.workloads.options import MODE

ENFORCED, FREE = "helm-enforced", "helm-free"
CONFIGURED = tuple(
    f"{CONFIGURATIONS}/{kind}webhookconfigurations/{RELEASE}" for kind in ("mutating", "validating")
)
BUNDLE = base64.b64encode(bundle_pem([new_authority(datetime.now(UTC)).certificate])).decode()
DEPLOYMENT = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/bayplan"
RELEASES = "/api/v1/namespaces/default/secrets"
RESERVATIONS_KIND = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/reservations.bayplan.dev"
FIELD = "fieldOfTheNextRelease"
WAIT = ("--wait", "--timeout", "3m")
GPU_POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "gpu"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}


@pytest.fixture(scope="module")
def helm(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Helm]:
    """Two nodes for the replicas, an enforced namespace and one without a label, and none of the objects that
    Helm installs: Helm does not adopt those of earlier modules. No release is left afterwards.
    """
    others = cluster.kubectl("delete", "-k", str(CHART.parent), "--ignore-not-found", "--timeout=90s")
    assert others.status == 0, others.err
    folder = tmp_path_factory.mktemp("helm")
    helm = Helm(helm_program(), folder, cluster.kubectl.kubeconfig)
    fleet = Fleet(cluster.api)
    for name, labels in ((ENFORCED, {MODE: "enforce"}), (FREE, {})):
        namespace(cluster.api, name)
        cluster.api.merge(f"/api/v1/namespaces/{name}", {"metadata": {"labels": labels}})
    try:
        fleet.make(nodes(1, 2))
        yield helm
    finally:
        helm("uninstall", RELEASE, "--ignore-not-found")
        fleet.remove()
        for name in (ENFORCED, FREE):
            cluster.api.delete(f"/api/v1/namespaces/{name}")


def asked_in(cluster: Cluster, *names: str) -> Callable[[], None]:
    """A function that requests a GPU pod in each of these namespaces by a dry run. It raises `ApiError` if
    one is blocked.
    """

    def call() -> None:
        for name in names:
            cluster.api.create(f"/api/v1/namespaces/{name}/pods", GPU_POD, dryRun="All")

    return call


def refused(cluster: Cluster, name: str) -> str:
    """The error for a GPU pod in this namespace, or "" if it may be created."""
    try:
        asked_in(cluster, name)()
    except ApiError as error:
        return str(error)
    return ""


def failure_policies(cluster: Cluster) -> set[str]:
    """The failure policies of the webhooks for pods in enforced namespaces."""
    hooks = [hook for path in CONFIGURED for hook in cluster.api.get(path)["webhooks"]]
    return {hook["failurePolicy"] for hook in hooks if hook["name"] == "pods.bayplan.dev"}


def written(cluster: Cluster) -> list[Json]:
    """What replicas write into objects of the release: the content of the Secret, and the CA of each
    webhook.
    """
    secret = cluster.api.get(SECRET).get("data", {})
    hooks = [hook for path in CONFIGURED for hook in cluster.api.get(path)["webhooks"]]
    return [secret, {hook["name"]: hook["clientConfig"].get("caBundle") for hook in hooks}]


def write(cluster: Cluster) -> None:
    """Writes as replicas do, with the same kind of patch."""
    cluster.api.call("PATCH", SECRET, {"data": {"ca-bundle.crt": BUNDLE}}, STRATEGIC)
    for path in CONFIGURED:
        names = [hook["name"] for hook in cluster.api.get(path)["webhooks"]]
        hooks = [{"name": name, "clientConfig": {"caBundle": BUNDLE}} for name in names]
        cluster.api.call("PATCH", path, {"webhooks": hooks}, STRATEGIC)


def next_release(folder: Path) -> Path:
    """The chart of a later release: another image, and another field in the schema of Reservations."""
    chart = folder / "chart"
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "0.2.0", "appVersion": "next"}))
    kinds = chart / "templates" / "20-crds.yaml"
    fields = "            status:\n              type: object\n              properties:\n"
    assert fields in kinds.read_text()
    kinds.write_text(
        kinds.read_text().replace(fields, f"{fields}                {FIELD}: {{type: string}}\n")
    )
    return chart


def image(cluster: Cluster) -> str:
    """The image of the replicas."""
    (container,) = cluster.api.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def test_installing_blocks_nothing_while_no_replica_answers(cluster: Cluster, helm: Helm) -> None:
    """Not in a namespace that is enforced already, nor where `mode` enforces those without a label."""
    with Load(asked_in(cluster, ENFORCED, FREE)) as load:
        helm.must("install", RELEASE, str(CHART), "--set", "mode=enforce", *WAIT)
        load.wait_for_calls(2)
    assert load.failures == []
    assert failure_policies(cluster) == {"Ignore"}
    status = cluster.api.get(DEPLOYMENT)["status"]
    assert status["readyReplicas"] == 3


def test_an_upgrade_closes_the_webhooks_keeps_what_replicas_wrote_and_is_never_a_replica_short(
    cluster: Cluster, helm: Helm, tmp_path: Path
) -> None:
    """To the next release, once replicas are ready; its kinds are brought too. Where nothing is enforced
    nothing is blocked meanwhile."""
    chart = next_release(tmp_path)
    write(cluster)
    before = written(cluster)
    assert BUNDLE in before[0].values()
    short: list[Json] = []

    def look() -> None:
        status = cluster.api.get(DEPLOYMENT)["status"]
        if status.get("availableReplicas", 0) < 3:
            short.append(status)

    with Load(asked_in(cluster, FREE)) as load, Load(look) as looks:
        helm.must("upgrade", RELEASE, str(chart), "--reset-values", *WAIT)
        load.wait_for_calls(2)
        looks.wait_for_calls(2)
    assert load.failures == looks.failures == short == []
    assert image(cluster) == "bayplan:next"
    (version,) = cluster.api.get(RESERVATIONS_KIND)["spec"]["versions"]
    assert FIELD in version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert failure_policies(cluster) == {"Fail"}
    assert written(cluster) == before
    wait_until(lambda: "failed calling webhook" in refused(cluster, ENFORCED), "the webhooks to be closed")
    assert refused(cluster, FREE) == ""


def test_back_to_the_first_revision_is_open_as_that_was_and_forth_is_closed(
    cluster: Cluster, helm: Helm
) -> None:
    """A rollback is what was there: image and webhooks; what replicas wrote stays."""
    before = written(cluster)
    for revision, policy, tag in (("1", "Ignore", "0.1.0"), ("2", "Fail", "next")):
        with Load(asked_in(cluster, FREE)) as load:
            helm.must("rollback", RELEASE, revision, *WAIT)
            load.wait_for_calls(2)
        assert load.failures == []
        assert (failure_policies(cluster), image(cluster)) == ({policy}, f"bayplan:{tag}")
        assert written(cluster) == before
        closed = policy == "Fail"
        wait_until(lambda closed=closed: bool(refused(cluster, ENFORCED)) is closed, "the webhooks")


def test_what_somebody_changed_with_kubectl_is_put_back_only_when_asked(cluster: Cluster, helm: Helm) -> None:
    """Helm names the field and who changed it; a key that the values do not give stays in any case."""
    upgrade = ("upgrade", RELEASE, str(CHART), "--reset-values", "--set-json")
    helm.must(*upgrade, 'parameters={"reserve.default":"nodes"}')
    change = '{"data":{"reserve.default":"none","reserve.whole-from":"0.6"}}'
    patch = ("patch", "configmap", "bayplan-parameters", "-n", SYSTEM, "--type=merge", "-p", change)
    assert cluster.kubectl(*patch).status == 0
    output = helm(*upgrade, 'parameters={"reserve.default":"nodes"}')
    assert output.status != 0
    assert 'conflict with "kubectl-patch" using v1: .data.reserve.default' in output.err
    helm.must(*upgrade, 'parameters={"reserve.default":"nodes"}', "--force-conflicts")
    path = f"/api/v1/namespaces/{SYSTEM}/configmaps/bayplan-parameters"
    assert cluster.api.get(path)["data"] == {"reserve.default": "nodes", "reserve.whole-from": "0.6"}


def test_uninstalling_blocks_nothing_and_leaves_nothing_behind(cluster: Cluster, helm: Helm) -> None:
    """Not one object of the chart, nor a record of the release; enforced namespaces are free again."""
    objects = json.loads(cluster.kubectl("get", "-f", "-", "-o", "json", text=manifest(helm)).out)["items"]
    assert len(objects) == len(helm.template())
    with Load(asked_in(cluster, FREE)) as load:
        helm.must("uninstall", RELEASE, *WAIT)
        load.wait_for_calls(2)
    assert load.failures == []
    wait_until(lambda: not refused(cluster, ENFORCED), "the API server to ask nobody")
    left = cluster.kubectl("get", "-k", str(CHART.parent), "--ignore-not-found", "-o", "name")
    assert left.out == ""
    assert not exists(cluster.api, f"/api/v1/namespaces/{SYSTEM}")
    records = [secret["metadata"]["name"] for secret in cluster.api.items(RELEASES)]
    assert [name for name in records if name.startswith("sh.helm.release")] == []


def test_policies_of_a_users_own_belong_to_the_release(cluster: Cluster, helm: Helm, tmp_path: Path) -> None:
    """An upgrade with other values keeps them, a rollback takes them away and brings them again, and nothing
    of a user's is in the namespace that goes with the release."""

    def stored() -> dict[str, str]:
        output = cluster.kubectl("-n", SYSTEM, "get", "configmaps", "-o", "json")
        by_name = {body["metadata"]["name"]: body for body in output.object["items"]}
        return dict(by_name.get("bayplan-additional-policies", {}).get("data", {}))

    assert main(["policies", "new", "gpu-owner", "--in", str(tmp_path)]) == 0
    file = tmp_path / "gpu-owner" / "policy.yaml"
    written = {"gpu-owner.yaml": file.read_text()}
    upgrade = ("upgrade", RELEASE, str(CHART), "--reset-then-reuse-values")
    helm.must("install", RELEASE, str(CHART))
    helm.must(*upgrade, "--set-file", f"policies.additional.gpu-owner={file}")
    assert stored() == written
    helm.must(*upgrade, "--set", "workers=2")
    assert stored() == written
    helm.must("rollback", RELEASE, "1")
    assert stored() == {}
    helm.must("rollback", RELEASE, "3")
    assert stored() == written
    helm.must("rollback", RELEASE, "1")
    helm.must("uninstall", RELEASE, *WAIT)
    assert not exists(cluster.api, f"/api/v1/namespaces/{SYSTEM}")


def manifest(helm: Helm) -> str:
    """The manifest of the release that Helm stores."""
    return helm.must("get", "manifest", RELEASE)
