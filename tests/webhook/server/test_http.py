"""The server under bad calls, bad ledgers, bad files and a stop: it stays up, and says what is wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from planner.ledger.conflicts import Wish
from planner.ledger.ledger import LedgerUnavailable, ReserveResult
from planner.ledger.sqlite import SqliteLedger
from planner.model.reservation import Book
from tests.webhook.calls import EXAMPLES, Serve, clusters, example, review
from webhook.cli.cluster_files.watched import ClusterFiles
from webhook.server.cluster_source import NoCluster
from webhook.server.listening import start
from webhook.wire.review import BODY_LIMIT

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 400), (b"{}", 400), (b"\xff\xfe", 400), (b"[" * 100_000, 400), (b" " * (BODY_LIMIT + 2), 413)],
    ids=["empty", "no review", "no utf-8", "deep", "huge"],
)
async def test_a_bad_call_is_a_4xx_with_one_line(serve: Serve, path: str, body: bytes, status: int) -> None:
    """The caller's fault is told to the caller, and the next call is answered."""
    async with serve("two-zones") as asked:
        answer = await asked.client.post(path, data=body, headers=JSON)
        text = await answer.text()
        assert answer.status == status
        assert text.count("\n") == 1
        assert "Traceback" not in text
        assert (await asked.client.get("/healthz")).status == 200


async def test_another_content_type_is_refused(serve: Serve) -> None:
    """415, as the API server never sends anything but JSON."""
    async with serve("two-zones") as asked:
        answer = await asked.client.post("/mutate", data=b"{}", headers={"Content-Type": "text/plain"})
        assert answer.status == 415


async def test_a_malformed_object_is_refused_with_its_field(serve: Serve) -> None:
    """A bad object is a good call: HTTP 200, allowed false, and the field that is wrong."""
    obj = example("job-two-nodes-one-rack")
    obj["spec"]["parallelism"] = "two"
    async with serve("superpod-32") as asked:
        response = await asked.mutate(obj)
    assert not response["allowed"]
    assert response["status"]["code"] == 422
    assert "spec.parallelism" in response["status"]["message"]


async def test_an_unknown_kind_passes_untouched(serve: Serve) -> None:
    """A CRD with a pod template somewhere is not Bayplan's business."""
    obj = {
        "apiVersion": "example.com/v1",
        "kind": "Flow",
        "metadata": {"name": "f", "namespace": "ml"},
        "spec": {
            "template": {
                "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
            }
        },
    }
    async with serve("superpod-32") as asked:
        assert (await asked.mutate(obj, uid="u")) == {
            "uid": "u",
            "allowed": True,
            "auditAnnotations": {**_revision(asked), "mode": "enforce"},
        }


def _revision(asked: Any) -> dict[str, str]:
    return {"revision": asked.webhook.service.policies.current.revision}


async def test_two_gangs_that_race_for_the_last_rack_get_it_once(serve: Serve) -> None:
    """One is admitted, the other is queued; never both."""
    async with serve("superpod-32") as asked:
        gangs = []
        for name in "abcdef":
            gang = example("jobset-64-gpus")
            gang["metadata"]["name"] = name
            gangs.append(asked.mutate(gang))
        responses = await asyncio.gather(*gangs)
        holders = await asked.holders()
    assert all(response["allowed"] for response in responses)
    assert sum("warnings" not in response for response in responses) == len(holders) == 1


async def test_a_ledger_that_cannot_be_written_refuses_in_words_and_the_server_stays(
    serve: Serve, tmp_path: Path
) -> None:
    """No place is promised that could not be kept."""

    class Broken(SqliteLedger):
        async def reserve_all(self, wishes: Sequence[Wish], now: float) -> ReserveResult:
            raise LedgerUnavailable("bayplan.db: the disk is full; free space on its file system and retry")

    ledger = Broken(tmp_path / "broken.db")
    async with serve("superpod-32", ledger=ledger) as asked:
        response = await asked.mutate(example("job-two-nodes-one-rack"))
        assert not response["allowed"]
        assert response["status"]["code"] == 503
        assert "the disk is full" in response["status"]["message"]
        assert (await asked.mutate(example("job-two-nodes-one-rack"), dry_run=True))["allowed"]


async def test_a_call_that_takes_too_long_is_given_up_inside_the_webhooks_timeout(
    serve: Serve, tmp_path: Path
) -> None:
    """It is refused in words, where anything is enforced; it is no error of the server."""

    class Slow(SqliteLedger):
        async def book(self, now: float, names: Iterable[str] = ()) -> Book:
            await asyncio.sleep(5)
            return await super().book(now)

    async with serve("superpod-32", ledger=Slow(tmp_path / "slow.db")) as asked:
        asked.webhook.deadline = 0.05
        body = orjson.dumps(review(example("job-two-nodes-one-rack")))
        answer = await asked.client.post("/mutate", data=body, headers=JSON)
        response = (await answer.json())["response"]
        assert (answer.status, response["allowed"], response["status"]["code"]) == (200, False, 429)
        assert "no decision within 0.05 s" in response["status"]["message"]


async def test_logs_hold_the_decision_and_nothing_of_the_pods_environment(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """One line a decision; a secret in an environment variable is in none."""
    obj = example("job-two-nodes-one-rack")
    obj["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "s3cr3t-value"}]
    with caplog.at_level(logging.INFO, "bayplan"):
        async with serve("superpod-32") as asked:
            await asked.mutate(obj)
    (line,) = [record.message for record in caplog.records if '"decision"' in record.message]
    logged = orjson.loads(line)
    assert (logged["allowed"], logged["plan"], logged["name"]) == (True, "admitted", obj["metadata"]["name"])
    assert "s3cr3t" not in caplog.text


async def test_metrics_count_decisions_and_name_the_revision(serve: Serve) -> None:
    """Prometheus sees what was decided and by which policies."""
    async with serve("superpod-32") as asked:
        await asked.mutate(example("job-two-nodes-one-rack"))
        text = await (await asked.client.get("/metrics")).text()
    assert 'bayplan_decisions_total{allowed="true",mode="enforce",phase="mutate"} 1.0' in text
    assert 'bayplan_outcomes_total{mode="enforce",outcome="changed"} 1.0' in text
    assert 'bayplan_plans_total{decision="admitted",mode="enforce",phase="mutate"} 1.0' in text
    assert f'bayplan_policy_set_info{{revision="{_revision(asked)["revision"]}"}} 1.0' in text


async def test_a_bad_policy_on_reload_keeps_the_last_good_set_and_shows(serve: Serve, tmp_path: Path) -> None:
    """Readiness says what is wrong; requests are answered as before."""
    folder = tmp_path / "policies"
    folder.mkdir()
    file = folder / "policy.yaml"
    file.write_text(DENY_ALL.replace("MESSAGE", "first"))
    async with serve("superpod-32", policies=str(folder)) as asked:
        store = asked.webhook.service.policies
        file.write_text(DENY_ALL.replace("MESSAGE", "second"))
        assert store.reload_if_changed()
        file.write_text(DENY_ALL.replace('"false"', "objekt.nope ==="))
        assert not store.reload_if_changed()
        response = await asked.mutate(example("job-two-nodes-one-rack"))
        detail = orjson.loads(await (await asked.client.get("/readyz")).read())
    assert "second" in response["status"]["message"]
    assert "policy.yaml" in detail["problems"][0]


DENY_ALL = """
apiVersion: bayplan.dev/v1alpha1
kind: ValidatingAdmissionPolicy
metadata: {name: deny-all}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], operations: ["*"]}]
  validations: [{expression: "false", message: MESSAGE}]
"""


async def test_a_bad_cluster_file_keeps_the_last_good_picture_and_shows(serve: Serve, tmp_path: Path) -> None:
    """A half-written file does not empty the cluster."""
    file = tmp_path / "cluster.yaml"
    file.write_text((EXAMPLES / "clusters" / "superpod-32.yaml").read_text())
    async with serve(cluster=ClusterFiles([str(file)])) as asked:
        file.write_text("apiVersion: v1\nkind: List\nitems: [")
        response = await asked.mutate(example("job-two-nodes-one-rack"))
        detail = orjson.loads(await (await asked.client.get("/readyz")).read())
    assert response["allowed"]
    assert "cluster.yaml:4" in detail["problems"][0]


async def test_a_stop_finishes_what_is_in_flight_and_readiness_says_no(serve: Serve, tmp_path: Path) -> None:
    """A rolling update loses no request."""
    entered = asyncio.Event()

    class WaitingGang(SqliteLedger):
        async def book(self, now: float, names: Iterable[str] = ()) -> Book:
            entered.set()
            await asyncio.sleep(0.3)
            return await super().book(now)

    async with serve("superpod-32", ledger=WaitingGang(tmp_path / "w.db")) as asked:
        running = await start(asked.webhook, "127.0.0.1", 0, None)
        url = f"http://127.0.0.1:{running.port}/mutate"
        body = orjson.dumps(review(example("job-two-nodes-one-rack")))
        async with asked.client.session as session:
            call = asyncio.create_task(session.post(url, data=body, headers=JSON))
            await entered.wait()
            stop = asyncio.create_task(running.stop())
            answer = await call
            assert orjson.loads(await answer.read())["response"]["allowed"]
            await stop
        assert asked.webhook.stopping


def test_the_cluster_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    """A new node counts in the next decision."""
    file = tmp_path / "cluster.yaml"
    text = (EXAMPLES / "clusters" / "two-zones.yaml").read_text()
    file.write_text(text)
    source = ClusterFiles([str(file)])
    before = len(source.snapshot().nodes)
    file.write_text(
        text + "\n---\napiVersion: v1\nkind: Node\nmetadata: {name: new}\nstatus: {allocatable: {cpu: 1}}\n"
    )
    assert len(source.snapshot().nodes) == before + 1
    assert len(clusters("two-zones").snapshot().nodes) == before


async def test_a_policy_may_refuse_a_deletion_or_a_scale(serve: Serve, tmp_path: Path) -> None:
    """Policies speak on DELETE and on subresources too, as upstream has it; nothing is released then."""
    file = tmp_path / "policy.yaml"
    file.write_text(
        DENY_ALL.replace("MESSAGE", "keep it").replace('operations: ["*"]', "operations: [DELETE]")
    )
    async with serve("superpod-32", policies=str(file)) as asked:
        obj = example("job-two-nodes-one-rack")
        await asked.mutate(obj)
        response = await asked.validate(obj, operation="DELETE")
        assert not response["allowed"]
        assert "keep it" in response["status"]["message"]
        assert len(await asked.holders()) == 1


async def test_readiness_tells_that_nothing_can_be_reserved(serve: Serve, tmp_path: Path) -> None:
    """The server stays ready, so that it can say so to who applies something."""

    class Locked(SqliteLedger):
        async def book(self, now: float, names: Iterable[str] = ()) -> Book:
            raise LedgerUnavailable("bayplan.db: locked by another process")

    async with serve("superpod-32", ledger=Locked(tmp_path / "locked.db")) as asked:
        answer = await asked.client.get("/readyz")
        assert answer.status == 200
        assert orjson.loads(await answer.read())["problems"] == ["bayplan.db: locked by another process"]


async def test_half_a_gpu_is_refused_as_the_api_server_would(serve: Serve) -> None:
    """Extended resources come in whole pieces."""
    obj = example("job-two-nodes-one-rack")
    obj["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "0.5"
    async with serve("superpod-32") as asked:
        response = await asked.mutate(obj)
    assert not response["allowed"]
    assert "whole pieces" in response["status"]["message"]


async def test_before_the_cluster_is_known_no_call_is_answered(serve: Serve) -> None:
    """Or a gang would be let in without a plan by a replica that has only just started."""

    class Starting(NoCluster):
        left = "/api/v1/nodes: not read yet"

        def waiting(self) -> str:
            return self.left

    starting = Starting()
    async with serve(cluster=starting) as asked:
        body = orjson.dumps(review(example("job-two-nodes-one-rack")))
        answer = await asked.client.post("/mutate", data=body, headers=JSON)
        assert (answer.status, await answer.text()) == (503, "not ready: /api/v1/nodes: not read yet\n")
        starting.left = ""
        assert (await asked.client.post("/mutate", data=body, headers=JSON)).status == 200
        starting.left = "parameters of a policy that came since: not read yet"
        assert (await asked.client.post("/mutate", data=body, headers=JSON)).status == 200
