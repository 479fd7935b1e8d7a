"""An installation under load: certificates are rotated, replicas upgraded, and policies broken and repaired.

The replicas use a token of their service account, with the rights of 30-rbac.yaml and 35-certificates.yaml
only.
"""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from certs.authority import KeyPair, Material, bundle_pem, read_bundle, read_pair
from tests.e2e.api import Json
from tests.e2e.hook import bayplan
from tests.e2e.processes import wait_until
from tests.e2e.replicas import events, job, racks_of, reservations
from tests.e2e.rollout import SECRET, Load, Rollout, rollout_of, trusted_call, wait_for_certificate
from tests.e2e.stage import Cluster
from webhook.kube.certificates import data_of

JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"


@pytest.fixture(scope="module")
def rollout(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rollout]:
    """Two replicas with the account's rights, on two racks of two nodes. The Secret is empty at first."""
    with rollout_of(cluster, tmp_path_factory.mktemp("rollout"), 2, 2) as rollout:
        rollout.add()
        rollout.add()
        yield rollout


def plan_dry(rollout: Rollout) -> Json:
    """A dry run through the API server, which calls the mutating and the validating webhook."""
    stored = rollout.api.create(JOBS, job("dry", 2), dryRun="All")
    assert "bayplan.dev/placement" in stored["metadata"]["annotations"], "the mutating call failed"
    return stored


def pods(rollout: Rollout, name: str) -> list[Json]:
    """The pods of a Job."""
    return rollout.api.items(PODS, labelSelector=f"job-name={name}")


def bound(rollout: Rollout, name: str, count: int) -> list[Json]:
    """Waits until this many pods of a Job are bound."""
    wait_until(
        lambda: sum("nodeName" in p["spec"] for p in pods(rollout, name)) == count, f"{name} to run", 60
    )
    return pods(rollout, name)


def aged(pair: KeyPair, signer: KeyPair, left: timedelta) -> KeyPair:
    """The same certificate with this much time left."""
    old, now = pair.certificate, datetime.now(UTC)
    builder = x509.CertificateBuilder(
        old.issuer,
        old.subject,
        pair.key.public_key(),
        x509.random_serial_number(),
        now - timedelta(days=100),
        now + left,
        list(old.extensions),
    )
    return KeyPair(builder.sign(signer.key, hashes.SHA256()), pair.key)


def make_due(rollout: Rollout) -> bytes:
    """Lets the Secret's certificates expire soon without a change to what clients trust; returns the serving
    one as PEM.
    """
    ca = read_pair(rollout.stored("ca.crt"), rollout.stored("ca.key"))
    leaf = read_pair(rollout.stored("tls.crt"), rollout.stored("tls.key"))
    old = aged(ca, ca, timedelta(days=10))
    material = Material(old, aged(leaf, ca, timedelta(days=9)), (old.certificate,))
    rollout.api.merge(SECRET, {"data": data_of(material)})
    assert material.leaf is not None
    return material.leaf.certificate_pem


def test_replicas_make_their_certificates_and_bring_the_ca_to_the_configurations(rollout: Rollout) -> None:
    """From an empty Secret and configurations without a CA to a call that the API server trusts."""
    assert rollout.bundle() == rollout.stored("ca-bundle.crt")
    assert {replica.certificate().strip() for replica in rollout.replicas} == {
        rollout.stored("tls.crt").decode().strip()
    }
    plan_dry(rollout)
    trusted_call(rollout)


def test_with_the_rights_of_the_manifests_a_gang_is_planned_queued_let_in_and_released(
    rollout: Rollout,
) -> None:
    """Two gangs take both racks, a third waits at its gate and gets in; no call was forbidden."""
    for name in ("one", "two"):
        rollout.api.create(JOBS, job(name, 2))
        assert len(racks_of(bound(rollout, name, 2))) == 1
    rollout.api.create(JOBS, job("three", 2))
    wait_until(lambda: "Queued" in dict(events(rollout.api, "Job", "three")), "the event", 60)
    rollout.api.delete(f"{JOBS}/one")
    assert len(racks_of(bound(rollout, "three", 2))) == 1
    wait_until(lambda: "Admitted" in dict(events(rollout.api, "Job", "three")), "the event", 60)
    for name in ("two", "three"):
        rollout.api.delete(f"{JOBS}/{name}")
    wait_until(lambda: not reservations(rollout.api), "the places to be free", 60)
    assert "forbidden" not in rollout.output().lower()


def test_the_doctor_finds_it_well_and_names_a_right_that_was_taken_away(rollout: Rollout) -> None:
    """`bayplan doctor` on the installation: everything that it looks at, but the Deployment, is there."""
    before = examined(rollout)
    well = {"API server", "CRDs", "mutating webhooks", "validating webhooks", "certificate", "controller"}
    assert {
        subject: before[subject] for subject in sorted(well | {"RBAC", "dry run", "topology racks"})
    } == dict.fromkeys(sorted(well | {"RBAC", "dry run", "topology racks"}), "ok")
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/bayplan"
    binding = rollout.api.get(path)
    rollout.api.delete(path)
    try:
        wait_until(lambda: examined(rollout)["RBAC"] == "fail", "the doctor to miss the rights")
    finally:
        del binding["metadata"]["resourceVersion"], binding["metadata"]["uid"]
        rollout.api.create(path.rpartition("/")[0], binding)
    wait_until(lambda: examined(rollout)["RBAC"] == "ok", "the doctor to find them again")


def examined(rollout: Rollout) -> dict[str, str]:
    """The worst finding of the doctor about each subject."""
    kubeconfig = str(rollout.cluster.kubectl.kubeconfig)
    findings = json.loads(bayplan("doctor", "--kubeconfig", kubeconfig, "-o", "json", statuses=(0, 1)))
    grades: dict[str, str] = {}
    for finding in findings:
        grades[finding["subject"]] = "fail" if grades.get(finding["subject"]) == "fail" else finding["grade"]
    return grades


def test_a_certificate_is_rotated_under_load_without_one_failed_request(rollout: Rollout) -> None:
    """CA and certificate both come due: a new CA is trusted beside the old, then signs a new certificate."""
    with (
        Load(lambda: plan_dry(rollout)) as reviews,
        Load(lambda: trusted_call(rollout)) as calls,
    ):
        for load in (reviews, calls):
            load.wait_for_calls(11)
        former = make_due(rollout)
        wait_for_certificate(rollout, former)
        for load in (reviews, calls):
            load.wait_for_calls(11)
    print(f"\n{reviews.calls} dry runs and {calls.calls} new connections across the rotation")
    assert (reviews.failures, calls.failures) == ([], [])
    assert min(reviews.calls, calls.calls) > 20
    new, old = read_bundle(rollout.bundle())
    leaf = read_bundle(rollout.stored("tls.crt"))[0]
    leaf.verify_directly_issued_by(new)
    read_bundle(former)[0].verify_directly_issued_by(old)


def test_a_wiped_ca_is_put_back(rollout: Rollout) -> None:
    """Somebody replaces a configuration's CA by another: within seconds ours is there again."""
    before = rollout.bundle()
    path = rollout.configured[0]
    webhooks = rollout.api.get(path)["webhooks"]
    for webhook in webhooks:
        webhook["clientConfig"]["caBundle"] = base64.b64encode(bundle_pem(read_bundle(before)[:1])).decode()
    rollout.api.merge(path, {"webhooks": webhooks})
    assert (
        rollout.api.get(path)["webhooks"][0]["clientConfig"]["caBundle"] != base64.b64encode(before).decode()
    )
    started = time.monotonic()
    wait_until(
        lambda: (
            {w["clientConfig"]["caBundle"] for w in rollout.api.get(path)["webhooks"]}
            == {base64.b64encode(before).decode()}
        ),
        "the CA",
    )
    print(f"\nput back after {time.monotonic() - started:.1f} s")


def test_an_upgrade_under_load_fails_no_request(rollout: Rollout) -> None:
    """For each replica a new one is ready before it is told to stop; it is called a little while still."""
    with (
        Load(lambda: plan_dry(rollout)) as reviews,
        Load(lambda: trusted_call(rollout)) as calls,
    ):
        for old in list(rollout.replicas):
            rollout.add()
            rollout.retire(old)
        time.sleep(1)
    print(f"\n{reviews.calls} dry runs and {calls.calls} new connections across the upgrade")
    assert (reviews.failures, calls.failures) == ([], [])
    assert min(reviews.calls, calls.calls) > 10


def test_policies_that_break_on_a_reload_leave_the_last_good_ones_serving(rollout: Rollout) -> None:
    """Under load: readiness stays and tells what is wrong; the answers' revision is the former one."""
    (folder,) = (Path(path) for path in rollout.policies)
    revision = rollout.replicas[0].readiness()[1]["revision"]
    with Load(lambda: plan_dry(rollout)) as reviews:
        bad = folder / "bad" / "policy.yaml"
        shutil.copytree(folder / "scheduler-name", bad.parent)
        bad.write_text(bad.read_text().replace("expression:", "expresion:"))
        for replica in rollout.replicas:
            wait_until(lambda replica=replica: bool(replica.readiness()[1].get("problems")), "the problem")
            status, detail = replica.readiness()
            assert (status, detail["revision"]) == (200, revision)
            assert "bad/policy.yaml" in str(detail["problems"])
        shutil.rmtree(bad.parent)
        for replica in rollout.replicas:
            wait_until(lambda replica=replica: replica.readiness()[1].get("problems") == [], "the mended set")
    assert reviews.failures == []
