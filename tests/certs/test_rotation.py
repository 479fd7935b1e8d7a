"""The folder: private keys are private, every file changes at once, and a bad file is named."""

import asyncio
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from certs import rotation
from certs.authority import CertificateError, read_pair, service_names
from certs.rotation import Rotation, keep, load

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = service_names("bayplan", "gpu-system", loopback=True)


@pytest.fixture
def folder(tmp_path):
    """Where the certificates of a test live; not there yet."""
    return tmp_path / "certs"


def test_an_empty_folder_is_filled(folder):
    """The first check makes all five files and says so."""
    assert Rotation(folder, NAMES).check(NOW) == ("made a CA", "made a serving certificate (there was none)")
    assert {"ca.crt", "ca.key", "tls.crt", "tls.key", "ca-bundle.crt"} <= {p.name for p in folder.iterdir()}


def test_keys_are_for_their_owner_only(folder):
    """Both keys have mode 0600."""
    Rotation(folder, NAMES).check(NOW)
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in ("ca.key", "tls.key")} == {0o600}


def written(path):
    """What changes when a file is written, and not when it is read, as the time of access does."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, path.read_bytes()


def test_a_second_check_changes_nothing(folder):
    """While nothing is due, not even a file's time changes."""
    rotation = Rotation(folder, NAMES)
    rotation.check(NOW)
    before = written(folder / "tls.crt")
    assert rotation.check(NOW + timedelta(hours=12)) == ()
    assert written(folder / "tls.crt") == before


def test_a_due_leaf_is_replaced_under_the_same_ca(folder):
    """After 135 days there is a new leaf; the CA and the bundle stay."""
    rotation = Rotation(folder, NAMES)
    rotation.check(NOW)
    before = load(folder)
    assert rotation.check(NOW + timedelta(days=136)) == (
        "made a serving certificate (the former one was due)",
    )
    after = load(folder)
    assert (after.ca.certificate, after.trusted) == (before.ca.certificate, before.trusted)
    assert after.leaf.certificate != before.leaf.certificate


def test_a_ca_that_ended_leaves_the_bundle(folder):
    """Three weeks after the renewal the former CA is trusted no more, and the check says so."""
    rotation = Rotation(folder, NAMES)
    for days in (0, 140, 280, 355):
        rotation.check(NOW + timedelta(days=days))
    assert len(load(folder).trusted) == 2
    rotation.check(NOW + timedelta(days=360))
    assert rotation.check(NOW + timedelta(days=366)) == ("brought the bundle up to date",)
    assert len(load(folder).trusted) == 1


def test_former_generations_are_removed(folder):
    """Renewals and crashes leave one generation on disk."""
    rotation = Rotation(folder, NAMES)
    rotation.check(NOW)
    (folder / "..generation-of-a-crash").mkdir()
    rotation.check(NOW + timedelta(days=136))
    assert len(list(folder.glob("..generation-*"))) == 1


def test_plain_files_are_taken_over(folder):
    """A folder of plain files, as an older tool left it, is kept while it is good and linked when renewed."""
    rotation = Rotation(folder, NAMES)
    rotation.check(NOW)
    contents = {name: (folder / name).read_bytes() for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")}
    for name, content in contents.items():
        (folder / name).unlink()
        (folder / name).write_bytes(content)
    assert rotation.check(NOW + timedelta(days=1)) == ()
    rotation.check(NOW + timedelta(days=136))
    assert (folder / "tls.crt").is_symlink()
    assert load(folder).leaf.certificate.not_valid_after_utc > NOW + timedelta(days=200)


def crash_at(monkeypatch, number):
    """Makes the link with this number fail, and all later ones, as if the process ended there."""
    links_made = 0

    def link(path, target, real=rotation._link):
        nonlocal links_made
        links_made += 1
        if links_made > number:
            raise OSError("crash")
        real(path, target)

    monkeypatch.setattr(rotation, "_link", link)


@pytest.mark.parametrize("links", range(7))
def test_a_crash_while_the_first_links_are_made_is_repaired(folder, monkeypatch, links):
    """At no point is a certificate there without its key, and the next check makes the rest."""
    with monkeypatch.context() as patched:
        crash_at(patched, links)
        with pytest.raises(OSError, match="crash"):
            Rotation(folder, NAMES).check(NOW)
    material = load(folder)
    assert (material.ca is None) == (material.leaf is None)
    Rotation(folder, NAMES).check(NOW)
    assert load(folder).leaf is not None
    assert Rotation(folder, NAMES).check(NOW) == ()
    assert len(list(folder.glob("..generation-*"))) == 1


@pytest.mark.parametrize("links", range(7))
def test_a_crash_while_links_replace_plain_files_is_repaired(folder, monkeypatch, links):
    """Whichever files are new by then, the next check brings the others."""
    Rotation(folder, NAMES).check(NOW)
    for name in ("ca.crt", "ca.key", "tls.crt", "tls.key", "ca-bundle.crt"):
        content = (folder / name).read_bytes()
        (folder / name).unlink()
        (folder / name).write_bytes(content)
    late = NOW + timedelta(days=350)
    with monkeypatch.context() as patched:
        crash_at(patched, links)
        with pytest.raises(OSError, match="crash"):
            Rotation(folder, NAMES).check(late)
    Rotation(folder, NAMES).check(late)
    assert load(folder).leaf.certificate.not_valid_after_utc > late + timedelta(days=100)
    assert Rotation(folder, NAMES).check(late) == ()


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.crt", "tls.key", "ca-bundle.crt"])
def test_a_damaged_file_is_named_and_left_alone(folder, name):
    """Nothing is overwritten that a person may still want to look at."""
    rotation = Rotation(folder, NAMES)
    rotation.check(NOW)
    (folder / name).write_bytes(b"damaged")
    with pytest.raises(CertificateError, match=name):
        rotation.check(NOW)
    assert (folder / name).read_bytes() == b"damaged"


def test_half_a_pair_is_named(folder):
    """A certificate without its key is an error that says which file is missing."""
    rotation = Rotation(folder, NAMES)
    rotation.check(NOW)
    (folder / "tls.key").unlink()
    with pytest.raises(CertificateError, match=r"tls\.key: it is missing"):
        rotation.check(NOW)


WRITER = """
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from certs.authority import service_names
from certs.rotation import Rotation
now = datetime(2026, 3, 1, 12, tzinfo=UTC)
names = service_names("bayplan", "gpu-system", loopback=True)
while True:
    Rotation(Path(sys.argv[1]), names).check(now)
    now += timedelta(days=140)
    print("renewed", flush=True)
"""


def test_a_kill_at_any_point_leaves_a_matching_pair(folder):
    """Whenever the writer dies, the certificate and the key on disk belong together."""
    for renewals in (1, 2, 3, 5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(renewals):
            writer.stdout.readline()
        writer.kill()
        writer.communicate()
        read_pair((folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes())
        read_pair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())


STARTER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from certs.authority import service_names
from certs.rotation import Rotation
rotation = Rotation(Path(sys.argv[1]), service_names("bayplan", "gpu-system", loopback=True))
print("ready", flush=True)
sys.stdin.readline()
for step in rotation.check(datetime(2026, 3, 1, 12, tzinfo=UTC)):
    print(step)
"""


def test_processes_that_start_at_once_make_one_ca(folder):
    """Of four checks of an empty folder one makes the CA, and the others find it."""
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", STARTER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for starter in starters:
        assert starter.stdout.readline() == "ready\n"
    for starter in starters:
        starter.stdin.write("go\n")
        starter.stdin.flush()
    output = "".join(starter.communicate(timeout=60)[0] for starter in starters)
    assert output.count("made a CA") == output.count("made a serving certificate") == 1


async def test_keeping_reports_what_goes_wrong_and_goes_on(folder):
    """A folder that cannot be read is reported at each check, and mended once the cause is gone."""
    Rotation(folder, NAMES).check(NOW)
    (folder / "tls.key").unlink()
    reports = asyncio.Queue()
    keeping = asyncio.create_task(
        keep(Rotation(folder, NAMES), lambda: NOW, reports.put_nowait, timedelta(milliseconds=10))
    )
    async with asyncio.timeout(60):
        assert "certificates not renewed: " in await reports.get()
        (folder / "tls.crt").unlink()
        while (report := await reports.get()).startswith("certificates not renewed: "):
            pass
    keeping.cancel()
    assert report == "made a serving certificate (there was none)"
