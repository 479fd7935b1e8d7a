"""`bayplan serve` with the image's policies and a user's own beside them, as the chart starts it."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import aiohttp
import orjson

from tests.webhook.calls import example, review
from webhook.cli.main import main

HEADERS = {"Content-Type": "application/json"}
ROOT = Path(__file__).parents[3]


def mounted(folder: Path, name: str, key: str = "own.yaml") -> Path:
    """A new policy of this name as the key of a ConfigMap that is mounted."""
    assert main(["policies", "new", name, "--in", str(folder / "ours")]) == 0
    mount = folder / "additional-policies"
    mount.mkdir()
    (mount / key).write_text((folder / "ours" / name / "policy.yaml").read_text())
    return mount


def command(folder: Path, own: Path) -> list[str]:
    """`bayplan serve` with both folders, on a port that is free."""
    words = ["serve", "--insecure", "--port", "0", "--ledger", str(folder / "book.db"), "--mode=enforce"]
    return [sys.executable, "-m", "webhook.cli.main", *words, "-p=policies", f"-p={own}"]


async def test_a_policy_of_a_users_own_is_in_force_beside_those_of_the_image(tmp_path: Path) -> None:
    """A GPU Job meets both: the own one refuses it until it has a label, then a shipped one changes it."""
    process = await asyncio.create_subprocess_exec(
        *command(tmp_path, mounted(tmp_path, "gpu-owner")), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            while not (line := re.search(r"serving on (\S+),", (await process.stdout.readline()).decode())):
                pass
        job = example("job-two-nodes-one-rack")
        async with aiohttp.ClientSession() as session:
            without = await asked(session, line[1], job)
            job["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {})["team"] = "vision"
            labelled = await asked(session, line[1], job)
    finally:
        process.kill()
        await process.wait()
    assert not without["allowed"]
    assert "gpu-owner" in without["status"]["message"]
    assert labelled["allowed"]
    assert labelled["patch"]


async def asked(session: aiohttp.ClientSession, address: str, job: object) -> dict[str, object]:
    """The response of the mutating call."""
    async with session.post(f"{address}/mutate", data=orjson.dumps(review(job)), headers=HEADERS) as answer:
        return dict(orjson.loads(await answer.read())["response"])


async def test_a_policy_with_the_name_of_a_shipped_one_stops_the_start(tmp_path: Path) -> None:
    """In words: a replica that starts with it does not come up."""
    (tmp_path / "additional-policies").mkdir()
    own = tmp_path / "additional-policies" / "own.yaml"
    own.write_text((ROOT / "policies" / "guaranteed-qos" / "policy.yaml").read_text())
    process = await asyncio.create_subprocess_exec(
        *command(tmp_path, own.parent), cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 2
    assert "occurs twice; the first is in policies/guaranteed-qos/policy.yaml" in errors.decode()
    assert "Traceback" not in errors.decode()
