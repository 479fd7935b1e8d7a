"""A disk that fills up while the webhook serves: /readyz says so before a reservation is lost to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from planner.ledger.sqlite import SqliteLedger
from tests.webhook.calls import Serve, example

MEBIBYTE = 2**20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB and 100 files; skipped where the user may not mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=100", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("needs the right to mount a file system: runs as root, where the container allows it")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Take all that is left of a disk."""
    with suppress(OSError), (folder / "other").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


async def test_readyz_tells_of_a_full_disk_and_of_its_end(serve: Serve, small_disk: Path) -> None:
    """It names the folder and what is kept there; the server stays ready, and refuses in words."""
    async with serve("superpod-32", ledger=SqliteLedger(small_disk / "ledger.db")) as asked:
        asked.webhook.folders = {"reservations": small_disk}

        async def problems() -> list[str]:
            answer = await asked.client.get("/readyz")
            assert answer.status == 200
            return (await answer.json())["problems"]  # type: ignore[no-any-return]

        assert await problems() == []
        fill(small_disk)
        (problem,) = await problems()
        assert (
            problem
            == f"reservations: the disk of {small_disk} is full, 0 KiB are left; free some space there"
        )
        response = await asked.mutate(example("job-two-nodes-one-rack"))
        assert "the disk is full" in response["status"]["message"]
        (small_disk / "other").unlink()
        assert await problems() == []


async def test_readyz_tells_of_a_disk_that_takes_no_more_files(serve: Serve, small_disk: Path) -> None:
    """There is space, and yet no journal and no certificate can be written."""
    async with serve("superpod-32") as asked:
        asked.webhook.folders = {"certificates": small_disk, "reservations": small_disk / "gone"}
        with suppress(OSError):
            for number in range(200):
                (small_disk / str(number)).touch()
        shown = (await (await asked.client.get("/readyz")).json())["problems"]
        assert shown == [
            f"certificates: the disk of {small_disk} takes no more files; delete some there",
            f"reservations: {small_disk / 'gone'} cannot be looked at: No such file or directory",
        ]
