"""The files of a journal: what is in them, how large they grow, and how far they are read."""

from __future__ import annotations

import copy
import errno
import io
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import cluster
from tests.webhook.calls import EXAMPLES, Serve, example, patched
from tests.webhook.journal.traffic import ENFORCED, NOTHING, Traffic, job, pod, replayed
from webhook.admission.decision import decide
from webhook.cli.cluster_files.reading import read_cluster_files
from webhook.cli.common.inputs import policies
from webhook.cli.installation.journaling import keep_journal
from webhook.journal.entries import HEAD, LINE_LIMIT, VERSION, answered, entry_of, line_of
from webhook.journal.reader import JournalReader
from webhook.journal.secrets import without_secrets
from webhook.journal.writer import FILES, JournalWriter
from webhook.wire.request import from_object

SECRET = "s3cr3t"
VARIABLE = {"name": "TOKEN", "value": SECRET}


def secretive(name: str = "p") -> Any:
    """A pod with a secret wherever there may be one."""
    obj = pod(name, initContainers=[{"name": "i", "image": "busybox:1", "env": [VARIABLE]}])
    obj["spec"]["containers"][0]["env"] = [
        VARIABLE,
        {"name": "B", "valueFrom": {"secretKeyRef": {"key": "k"}}},
    ]
    last = {"kubectl.kubernetes.io/last-applied-configuration": orjson.dumps(obj).decode()}
    obj["metadata"] |= {"annotations": last, "managedFields": [{"manager": SECRET}]}
    return obj


@pytest.mark.parametrize(
    "obj",
    [
        secretive(),
        {"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": SECRET}, "stringData": {"b": SECRET}},
        {"kind": "RayJob", "spec": {"runtimeEnvYAML": f"env_vars: {{A: {SECRET}}}"}},
        {"kind": "Job", "spec": {"template": {"spec": {"containers": [{"env": [VARIABLE]}]}}}},
        {"kind": "SparkApplication", "spec": {"driver": {"envVars": {"TOKEN": SECRET}}}},
        {"kind": "List", "items": [{"kind": "ConfigMap", "data": {"a": SECRET}}]},
    ],
)
def test_secrets_are_left_out_and_names_are_kept(obj: Any) -> None:
    """Values of variables, content of Secrets and ConfigMaps, copies of the object in its metadata."""
    before = copy.deepcopy(obj)
    kept = orjson.dumps(without_secrets(obj)).decode()
    assert SECRET not in kept
    assert ("TOKEN" in kept) == ("TOKEN" in str(obj.get("spec")))
    assert obj == before


def test_a_line_holds_no_secret_of_the_object_nor_of_the_one_before() -> None:
    """Nor does what policies change."""
    request = from_object(secretive(), "UPDATE", old_object=secretive(), uid="u")
    line = line_of(1, "mutate", request, decide(request, NOTHING, None, "mutate", ENFORCED))
    assert SECRET.encode() not in line
    assert line.count(b"\n") == 1


@given(st.text(max_size=30), st.text(max_size=30), st.floats(0, 2e9))
def test_an_admission_is_read_as_it_was_written(name: str, image: str, moment: float) -> None:
    """Whatever stands in it: one line, the same request, the same answer."""
    request = from_object(pod(name, image), uid="u")
    decision = decide(request, NOTHING, cluster("r1: a b"), "mutate", ENFORCED)
    line = line_of(moment, "mutate", request, decision, ["bp-1"])
    entry = entry_of(orjson.loads(line))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert (entry.request.object, entry.request.uid) == (request.object, "u")
    assert (entry.answer, entry.gone) == (answered(decision, "Pod"), ("bp-1",))
    assert entry.time == pytest.approx(moment, abs=0.001)


def written(folder: Path, count: int, limit: int) -> list[Path]:
    """The files after so many admissions."""
    clock = iter(range(10_000))
    journal = JournalWriter(folder, limit, clock=lambda: float(next(clock)))
    journal.start()
    request = from_object(pod("p" * 200), uid="u")
    decision = decide(request, NOTHING, None, "mutate", ENFORCED)
    for _ in range(count):
        journal.record("mutate", request, decision)
        journal._queue.join() if journal._queue.full() else None
    journal.close()
    return sorted(folder.iterdir())


def test_a_journal_is_bounded_and_keeps_the_newest(tmp_path: Path) -> None:
    """The oldest files go; each begins with the version."""
    files = written(tmp_path, 500, 64 * 1024)
    assert len(files) == FILES
    assert sum(path.stat().st_size for path in files) <= 64 * 1024
    for path in files:
        assert orjson.loads(path.read_bytes().splitlines()[0])[HEAD] == VERSION
    reader = JournalReader([str(tmp_path)])
    times = [entry.time for entry in reader.entries()]
    assert times == sorted(times)
    assert reader.problems == []


def test_files_from_before_a_restart_count_and_those_of_others_stay(tmp_path: Path) -> None:
    """A container that is restarted has its host name and process id again, and its volumes."""
    others = tmp_path / f"20260101T000000.000000Z-pod-{JournalWriter(tmp_path, 1).name}.jsonl"
    others.write_bytes(b"")
    first = written(tmp_path, 1, 64 * 1024)
    for begin in range(1, 3 * FILES):
        clock = iter(range(100 * begin, 10_000))
        journal = JournalWriter(tmp_path, 64 * 1024, clock=lambda clock=clock: float(next(clock)))
        journal.start()
        journal.close()
    files = sorted(tmp_path.iterdir())
    assert others in files
    assert len(files) == FILES + 1
    assert not set(first) - {others} & set(files)


def test_a_volume_that_is_smaller_than_the_journal_is_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Files of this journal from before a restart count as room: they are replaced."""
    limit = 64 * 2**20

    def start(name: str) -> None:
        journal = JournalWriter(tmp_path, limit, name)
        journal.start()
        journal.close()

    start("a")
    assert caplog.text == ""
    volume = SimpleNamespace(f_bavail=limit // 512 - 1, f_frsize=512)
    monkeypatch.setattr("os.statvfs", lambda _: volume)
    start("b")
    assert "may take 64 MiB, and its volume has room for 63 MiB" in caplog.text
    caplog.clear()
    (former,) = tmp_path.glob("*-b.jsonl")
    former.write_bytes(b"\n" * 512)
    start("b")
    assert caplog.text == ""


def test_what_has_no_room_in_the_queue_is_counted_and_nobody_waits(tmp_path: Path) -> None:
    """Nor does a disk that cannot be written stop anything."""
    journal = JournalWriter(tmp_path, 64 * 1024)
    request = from_object(pod(), uid="u")
    decision = decide(request, NOTHING, None, "mutate", ENFORCED)
    for _ in range(journal._queue.maxsize + 7):
        journal.record("mutate", request, decision)
    assert journal.dropped._value.get() == 7


def test_an_admission_that_cannot_be_told_is_counted_and_the_next_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread would end for ever, and each later admission be lost."""
    errors = [KeyError("odd"), AttributeError("odd")]

    def line_after_errors(*call: Any) -> bytes:
        if errors:
            raise errors.pop()
        return line_of(*call)

    monkeypatch.setattr("webhook.journal.writer.line_of", line_after_errors)
    journal = JournalWriter(tmp_path, 64 * 1024)
    journal.start()
    request = from_object(pod(), uid="u")
    decision = decide(request, NOTHING, None, "mutate", ENFORCED)
    for _ in range(3):
        journal.record("mutate", request, decision)
    journal.close()
    assert journal.dropped._value.get() == 2
    assert len(list(JournalReader([str(tmp_path)]).entries())) == 1


class FullDisk(io.FileIO):
    """Takes the beginning of the first long write, as a disk does that gets full, and then nothing."""

    full = False

    def write(self, data: Any) -> int:
        """Writes what there is room for."""
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.full = len(data) > 4096
        return super().write(bytes(data)[:4096])


def test_a_line_that_a_full_disk_cut_off_does_not_hide_the_lines_after_it(tmp_path: Path) -> None:
    """Once there is space again, the journal goes on behind the last whole line."""
    journal = JournalWriter(tmp_path, 64 * 2**20)
    journal.start()
    (path,) = tmp_path.iterdir()
    assert journal._file is not None
    journal._file.close()
    journal._file = io.BufferedWriter(FullDisk(path, "ab"))
    lines = []
    for number, size in enumerate((1, 50_000, 1, 1)):
        request = from_object(pod(f"p{number}", "x" * size), uid="u")
        lines.append(line_of(number, "mutate", request, decide(request, NOTHING, None, "mutate", ENFORCED)))
    journal._write(lines[0])
    with pytest.raises(OSError, match="No space left"):
        journal._write(lines[1])
    journal._write(lines[2])
    journal._write(lines[3])
    journal.close()
    assert read(path) == (["research/Pod/p0", "research/Pod/p2", "research/Pod/p3"], [])


def test_a_disk_that_hangs_does_not_keep_the_server_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue is full behind a write that does not end."""
    monkeypatch.setattr("webhook.journal.writer.STOP_SECONDS", 0.05)
    hangs, writes = threading.Event(), threading.Event()

    class Hanging(JournalWriter):
        def _write(self, line: bytes) -> None:
            writes.set()
            hangs.wait(60)

    journal = Hanging(tmp_path, 64 * 1024)
    journal.start()
    request = from_object(pod(), uid="u")
    decision = decide(request, NOTHING, None, "mutate", ENFORCED)
    journal.record("mutate", request, decision)
    assert writes.wait(60)
    for _ in range(journal._queue.maxsize):
        journal.record("mutate", request, decision)
    stopping = threading.Thread(target=journal.close)
    stopping.start()
    stopping.join(30)
    stopped = not stopping.is_alive()
    hangs.set()
    assert stopped


async def test_a_server_keeps_a_journal_where_it_is_told_to(serve: Serve, tmp_path: Path) -> None:
    """Each call with its answer, holds and claims; decided again nothing is different."""
    obj = example("job-six-nodes-one-rack")
    obj["spec"]["template"]["spec"]["containers"][0]["env"] = [VARIABLE]
    async with serve("superpod-32") as asked:
        assert keep_journal(None, 64, asked.webhook) is None
        journal = keep_journal(tmp_path / "journal", 64, asked.webhook)
        assert journal is not None
        stored = patched(obj, await asked.mutate(obj))
        await asked.validate({**stored, "metadata": {**stored["metadata"], "uid": "u1"}})
        await asked.mutate(example("job-76-gpus-one-rack"))
        text = await (await asked.client.get("/metrics")).text()
    journal.close()
    assert "bayplan_journal_dropped_total 0.0" in text
    (path,) = (tmp_path / "journal").iterdir()
    assert SECRET not in path.read_text()
    phases = [orjson.loads(line)["phase"] for line in path.read_bytes().splitlines()[1:]]
    assert phases == ["mutate", "validate", "mutate"]
    snapshot, around = read_cluster_files([str(EXAMPLES / "clusters" / "superpod-32.yaml")])
    shipped = policies(())
    differences, again, problems = replayed(path, shipped, snapshot, around.with_policy_parameters(shipped))
    assert (problems, list(differences.report("r").results)) == ([], [])
    assert again.snapshot is not None
    assert [(held.gang, held.expires) for held in again.snapshot.reservations] == [
        ("research/Job/pretrain-medium", None)
    ]


def of_three(path: Path) -> Path:
    """A journal of three admissions, of pods that are named after it."""
    traffic = Traffic()
    for number in range(3):
        traffic.call(pod(f"{path.stem}{number}"), number)
    return traffic.file(path)


def read(*paths: Path) -> tuple[list[str], list[str]]:
    """The names that are read, and what is wrong."""
    reader = JournalReader([str(path) for path in paths])
    return [entry.name for entry in reader.entries()], reader.problems


def test_a_journal_that_was_cut_is_read_to_where_it_is_good(tmp_path: Path) -> None:
    """At whatever byte, and it says so; the other files are read."""
    whole = of_three(tmp_path / "a.jsonl").read_bytes()
    other = of_three(tmp_path / "b.jsonl")
    for cut in range(len(whole.splitlines()[0]) + 1, len(whole), 97):
        (tmp_path / "a.jsonl").write_bytes(whole[:cut])
        names, problems = read(tmp_path / "a.jsonl", other)
        complete = whole[:cut].count(b"\n") - 1
        assert len(names) == 3 + complete
        assert problems == [] or f"a.jsonl:{complete + 2}: is cut" in problems[0]
        assert bool(problems) == (not whole[:cut].endswith(b"\n"))


def test_a_journal_that_is_given_twice_is_read_once(tmp_path: Path) -> None:
    """By its path; of a copy each admission is left out, and their number told."""
    path = of_three(tmp_path / "a.jsonl")
    assert read(path, path, tmp_path) == (["research/Pod/a0", "research/Pod/a1", "research/Pod/a2"], [])
    (tmp_path / "copy.jsonl").write_bytes(path.read_bytes())
    names, problems = read(tmp_path)
    assert len(names) == 3
    assert problems == ["3 admissions stand in several files, and were decided once"]


def test_a_journal_of_another_version_is_not_read_and_says_so(tmp_path: Path) -> None:
    """It may mean something else."""
    path = of_three(tmp_path / "a.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"bayplanJournal":%d' % VERSION, b'"bayplanJournal":9', 1))
    names, problems = read(path)
    assert names == []
    assert f"of journal version 9, this is version {VERSION}" in problems[0]


AUDITED = b'{"apiVersion":"audit.k8s.io/v1",%s}\n'
CREATED = (
    b'"verb":"create","stage":"ResponseComplete","responseStatus":{"code":201},'
    b'"requestObject":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}'
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"hello\n", "is no JSON"),
        (b"[1]\n", "is no JSON object"),
        (b'{"kind":"Pod"}\n', "neither a journal nor an audit log"),
        (b'{"bayplanJournal":2}\n{"time":1}\n', "is no admission"),
        (b'{"bayplanJournal":2}\n{"time":1e12,"phase":"mutate","answer":{},"request":{}}\n', "time is 1"),
        (b'{"bayplanJournal":2}\n{"time":1,"phase":"x","answer":{},"request":{}}\n', "no phase"),
        (b'{"bayplanJournal":2}\n' + b"x" * (LINE_LIMIT + 2), "a line of more than"),
        (b'{"bayplanJournal":null}\n', "of journal version null"),
        (b'{"bayplanJournal":2}\n{"phase":"mutate","answer":{}}\n', "a journal's line without `request`"),
        (b'{"bayplanJournal":2}\n{"time":null,"phase":"mutate","answer":{},"request":1}\n', "time is null"),
        (AUDITED % b'"responseStatus":5', "a value in it is not of the kind that an audit event has there"),
        (AUDITED % b'"responseStatus":{"code":"x"}', "a value in it is not of the kind"),
        (AUDITED % (CREATED + b',"stageTimestamp":"noon"'), "a value in it is not of the kind"),
        (AUDITED % CREATED, "an audit event without `stageTimestamp`"),
        (b"\xff\xfe\n", "is no JSON: bytes that are no UTF-8"),
        (b'{"bayplanJournal":' + b"[" * 300 + b"]" * 300 + b"}\n", "is nested too deeply"),
        (AUDITED % (b'"requestObject":' + b"[" * 900 + b"]" * 900), "is nested too deeply"),
        (AUDITED % (CREATED + b',"stageTimestamp":"9999-12-31T23:59:59-23:00"'), "no number of seconds"),
    ],
)
def test_a_file_that_is_no_journal_is_told_with_its_line(text: bytes, words: str, tmp_path: Path) -> None:
    """In words for people: no traceback, no word of Python's."""
    (tmp_path / "a.jsonl").write_bytes(text)
    names, problems = read(tmp_path / "a.jsonl")
    assert names == []
    assert words in problems[0]


@pytest.mark.parametrize(
    ("field", "value"), [("outcome", ["changed"]), ("outcome", "lost"), ("mode", {}), ("mode", "strict")]
)
def test_an_answer_that_no_webhook_gives_is_told_with_its_line(
    field: str, value: object, tmp_path: Path
) -> None:
    """A value that is none of the known ones is not counted as one."""
    line = Traffic().call(pod(), 1)
    line["answer"][field] = value
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"bayplanJournal":2}\n' + orjson.dumps(line) + b"\n")
    names, problems = read(path)
    assert names == []
    assert f"a.jsonl:2: is no admission: no {field}: " in problems[0]


def test_a_very_large_journal_is_read_line_by_line(tmp_path: Path) -> None:
    """A sparse file of ten gigabytes: the admissions before the hole, and where it begins."""
    path = of_three(tmp_path / "a.jsonl")
    with path.open("ab") as journal:
        journal.truncate(10 * 2**30)
    names, problems = read(path)
    assert len(names) == 3
    assert "a.jsonl:5: a line of more than" in problems[0]


def event(verb: str, obj: Any, code: int = 201, message: str = "", second: int = 0, **fields: Any) -> Any:
    """An event of the API server's audit log at level Request."""
    metadata = obj["metadata"]
    resource = {"Job": "jobs", "Pod": "pods"}[obj["kind"]]
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Request",
        "auditID": f"{metadata['name']}-{second}",
        "stage": "ResponseComplete",
        "requestURI": f"/apis/x/{resource}",
        "verb": verb,
        "user": {"username": "ann", "groups": ["dev"]},
        "objectRef": {"resource": resource, "namespace": metadata["namespace"], "name": metadata["name"]},
        "responseStatus": {"metadata": {}, "code": code, "message": message},
        "requestObject": None if verb == "delete" else obj,
        "stageTimestamp": f"2026-03-01T12:00:{second:02}.000000Z",
        **fields,
    }


REFUSED = 'admission webhook "pods.bayplan.dev" denied the request: no'


def test_an_audit_log_is_read_too(tmp_path: Path) -> None:
    """What was let in, what Bayplan refused, what was deleted; nothing that others refused, or only read."""
    events = [
        event("create", pod("a"), second=1),
        event("create", pod("b", image="busybox:2"), 403, REFUSED, 2),
        event("create", pod("c"), 403, "exceeded quota", 3),
        event("create", job("train", 2), second=4),
        event("get", pod("a"), 200, second=5),
        event("patch", pod("a"), 200, second=6),
        event("delete", job("train", 2), 200, second=7),
        event("create", job("next", 2), second=8),
        event("create", pod("a"), second=9, stage="RequestReceived"),
    ]
    path = tmp_path / "audit.log"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in events))
    names, problems = read(path)
    assert names == [
        "research/Pod/a", "research/Pod/b", "research/Job/train", "research/Job/train", "research/Job/next"
    ]  # fmt: skip
    assert "1 events tell no whole object" in problems[0]
    differences, again, _ = replayed(path, NOTHING, cluster("r1: a b"))
    assert [(row.rule, row.object) for row in differences.report("r").results] == [
        ("NewlyAdmitted", "research/Pod/b")
    ]
    assert again.snapshot is not None
    assert [held.gang for held in again.snapshot.reservations] == ["research/Job/next"]
