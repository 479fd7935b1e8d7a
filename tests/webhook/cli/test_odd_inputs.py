"""Odd paths, files and pipes, as a shell hands them over: told in words and a status, without a traceback."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from array import array
from pathlib import Path

import pytest

from tests.webhook.calls import EXAMPLES
from tests.webhook.cli.generate_completions import options
from webhook.cli.common.parsers import is_loopback
from webhook.cli.main import COMMANDS, main, parser

CLUSTER = str(EXAMPLES / "clusters" / "superpod-32.yaml")
ROOT = Path(__file__).parents[3]
JOB = EXAMPLES / "job-six-nodes-one-rack.yaml"
READERS = [
    ("plan", "-c", CLUSTER, "-f"),
    ("mutate", "-f"),
    ("report", "-f"),
    ("topology", "show", "-c"),
    ("policies", "check"),
]


def error_output(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that ends with bad input says on standard error."""
    assert main(words) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("words", [("plan", "-c", "-", "-f", "-"), ("mutate", "-f", "-", CLUSTER, "-")])
def test_standard_input_is_read_once(words: tuple[str, ...], capsys) -> None:
    """The second reader would get nothing, and the error would name the wrong file."""
    assert error_output(words, capsys).startswith("bayplan: standard input can be read once")


@pytest.mark.parametrize("command", READERS[:4], ids=lambda words: words[0])
def test_an_empty_path_is_not_the_folder_where_one_stands(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """As from a shell variable that is not set."""
    assert error_output((*command, ""), capsys).startswith("bayplan: an empty path")


@pytest.mark.parametrize("command", [c for c in READERS if c[0] != "report"], ids=lambda words: words[0])
def test_a_path_that_no_file_can_have_is_told(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Longer than names may be."""
    line = error_output((*command, "x" * 300), capsys)
    assert "File name too long" in line or "no such file or folder" in line


@pytest.mark.parametrize("name", ["-", "pipe.yaml"])
def test_what_is_read_from_a_pipe_has_no_line(tmp_path: Path, name: str) -> None:
    """A pipe cannot be read again to look for it: one with a name would be waited for without end."""
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    words = ("report", "-c", CLUSTER, "-o", "json", "-f", name if name == "-" else str(pipe))
    process = bayplan(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    text = (EXAMPLES / "job-nine-nodes-one-rack.yaml").read_text()
    if name != "-":
        pipe.write_text(text)
    out = process.communicate(text, timeout=60)[0]
    assert process.returncode == 1
    (refused,) = [result for result in json.loads(out)["results"] if result["result"] == "fail"]
    assert refused["field"] == "metadata.annotations[kai.scheduler/topology-required-placement]"
    assert refused["line"] is None


@pytest.mark.parametrize(
    ("path", "words"), [("x" * 300, "File name too long"), ("none.yaml", "No such file or directory")]
)
def test_a_path_that_cannot_be_read_is_a_finding_of_a_report(
    path: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the objects in the other paths are reported."""
    status = main(["report", "-f", path, str(JOB)])
    out = capsys.readouterr().out
    assert status == 2
    assert words in out.replace("\n        ", " ")
    assert "research/Job" in out


def test_a_folder_that_cannot_be_read_is_not_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else what lies in it would be missing from a report without a word. This one lies too deep to open."""
    (tmp_path / "job.yaml").write_text(JOB.read_text())
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=place)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    assert main(["report", "-f", str(tmp_path)]) == 2
    assert "cannot be read: File name too long" in capsys.readouterr().out.replace("\n        ", " ")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("long.yaml", f"a: {'9' * 5000}", "does not fit in 64 bits"),
        ("deep.json", f"{'[' * 200}{']' * 200}", "deep.json: nested deeper than 128 levels"),
        (
            "deep.yaml",
            "\n".join(f"{' ' * i}-\n{' ' * i} a:" for i in range(95)),
            "deep.yaml: nested deeper than 128 levels",
        ),
        ("itself.yaml", "&a [*a, *a]", "itself.yaml: nested deeper than 128 levels"),
    ],
)
def test_what_no_manifest_can_hold_is_told_once_and_without_advice_for_programmers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, message: str
) -> None:
    """A number of 5,000 digits, lists within lists."""
    (tmp_path / name).write_text(text)
    line = error_output(("plan", "-c", CLUSTER, "-f", str(tmp_path / name)), capsys)
    assert message in line
    assert "sys." not in line
    assert line.count(name) == 1


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "-c", CLUSTER),
        ("defrag", "-c", CLUSTER),
        ("nodes", "mig", "-c", CLUSTER),
    ],
    ids=lambda words: words[0],
)
def test_a_malformed_workload_is_told_with_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """Whichever command reads it."""
    file = tmp_path / "pod.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: 5\nspec: {containers: []}\n")
    assert f"bayplan: {file}: metadata: " in error_output((*command, "-f", str(file)), capsys)


@pytest.mark.parametrize(
    "command", [("plan", "-f", str(JOB)), ("top",), ("nodes", "check"), ("generate", "kai")]
)
def test_an_empty_cluster_file_is_told_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """A file that is still being written holds no object that could tell where it came from."""
    file = tmp_path / "cluster.yaml"
    file.touch()
    assert error_output((*command, "-c", str(file)), capsys).startswith(f"bayplan: {file}: no Node in it")


def bayplan(*words: str, stdin: int | None = None, stdout: int | None = None) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "webhook.cli.main", *words]
    return subprocess.Popen(
        command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=ROOT, preexec_fn=_in_front
    )


def _in_front() -> None:
    """As a shell starts what it waits for: where the tests run in the background, interrupts are ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    """As `bayplan policies list | head -1` does."""
    reading, writing = os.pipe()
    os.close(reading)
    process = bayplan("topology", "show", "-c", CLUSTER, stdout=writing)
    os.close(writing)
    assert process.communicate()[1] == ""
    assert process.returncode == 1


def test_a_full_disk_is_told_in_a_line() -> None:
    """And nothing is said of it a second time when the program ends."""
    full = os.open("/dev/full", os.O_WRONLY)
    process = bayplan("topology", "show", "-c", CLUSTER, stdout=full)
    os.close(full)
    assert process.communicate()[1] == "bayplan: No space left on device\n"
    assert process.returncode == 2


def _unread(pipe: int) -> int:
    """Bytes in a pipe that nobody has read."""
    count = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def _sleeps(process: subprocess.Popen[str]) -> bool:
    """Whether it waits for something. Between two reads an interrupt would be seen after the second only."""
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].startswith("S")


def test_an_interrupt_ends_the_command_without_a_word() -> None:
    """With the status that shells give it, here while it reads what never ends."""
    reading, writing = os.pipe()
    process = bayplan("topology", "show", "-c", "-", stdin=reading)
    os.close(reading)
    os.write(writing, b"#" * 200_000)  # more than a pipe holds: done once the command has begun to read
    while _unread(writing) or not _sleeps(process):  # now it has read all that there is, and waits
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == ""
    os.close(writing)
    assert process.returncode == 130


def test_a_user_without_a_home_is_none_the_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a uid that a container's /etc/passwd does not have: the libraries that ask for one get /."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--help"])
    assert ended.value.code == 0
    assert os.environ["HOME"] == "/"


@pytest.mark.parametrize("port", ["65536", "-1", "https"])
def test_a_port_that_is_none_is_told(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is started."""
    with pytest.raises(SystemExit) as ended:
        main(("serve", "--insecure", f"--port={port}"))
    assert ended.value.code == 2
    assert "is not a port: use 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "no such file"),
        ("- a list", "is no kubeconfig"),
        ("text", "is no kubeconfig"),
        ("a: [1", "is no kubeconfig"),
    ],
)
def test_a_kubeconfig_that_is_none_is_told(
    text: str | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its path."""
    file = tmp_path / "admin.conf"
    if text is not None:
        file.write_text(text)
    line = error_output(("doctor", "--kubeconfig", str(file)), capsys)
    assert words in line
    assert str(file) in line


def test_an_exit_status_that_no_shell_can_see_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """256 would come out as 0."""
    with pytest.raises(SystemExit) as ended:
        main(("report", "-f", str(JOB), "--warn-exit-code", "256"))
    assert ended.value.code == 2
    assert "'256' is not an exit status: use 0 to 255" in capsys.readouterr().err


def test_a_policy_files_name_may_be_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names of files are bytes."""
    name = os.fsdecode(b"bad\xffname.yaml")
    (tmp_path / name).write_bytes((ROOT / "policies" / "leaf-spine" / "policy.yaml").read_bytes())
    assert main(("policies", "check", str(tmp_path))) == 0
    assert "all well" in capsys.readouterr().out


def test_aliases_that_unfold_without_end_are_told_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nine values of nine values, nine times over."""
    bomb = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    bomb += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    (tmp_path / "bomb.yaml").write_text("\n".join(bomb))
    assert "its aliases unfold to more than" in error_output(("policies", "check", str(tmp_path)), capsys)


def test_a_tag_that_json_does_not_have_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A set is no mapping."""
    file = tmp_path / "node.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nspec: !!set {a, b}\n")
    assert "tag !!set is nothing that JSON can hold" in error_output(
        ("topology", "show", "-c", str(file)), capsys
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "report on what?"),
        (("-f", str(JOB), "--kubeconfig", "admin.conf"), "leave one out"),
        (("-c", CLUSTER, "--kubeconfig", "admin.conf"), "leave one out"),
        (("-f", str(JOB), "-n", "research"), "-n is for --kubeconfig"),
        (("--kubeconfig", "nowhere.conf"), "nowhere.conf: no such file"),
    ],
)
def test_a_report_is_on_manifests_or_on_a_cluster(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of both, and of a cluster that can be read."""
    assert why in error_output(("report", *words), capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ui", "-c", CLUSTER, "--port", "99999"), "'99999' is not a port: use 0 to 65535"),
        (("serve", "--deadline", "-1"), "'-1' is not a number of seconds above 0"),
        (("serve", "--deadline", "nan"), "'nan' is not a number of seconds"),
        (
            ("verify", "a/Job/b", "-c", CLUSTER, "--at-least", "nan"),
            "'nan' is not a share above 0",
        ),
        (("verify", "a/Job/b", "-c", CLUSTER, "--at-least", "80"), "'80' is not a share"),
    ],
)
def test_a_number_that_makes_no_sense_is_a_usage_error(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not a server that answers nobody in time, nor a check that always passes."""
    with pytest.raises(SystemExit) as stopped:
        main([*words])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_a_name_with_a_line_break_begins_no_line_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report in a log of CI could be forged with it."""
    (tmp_path / "job.yaml").write_text(
        JOB.read_text().replace("name: pretrain-medium", 'name: "a\\nforged"', 1)
    )
    main(["report", "-c", CLUSTER, "-f", str(tmp_path / "job.yaml"), "--all"])
    printed = capsys.readouterr()
    assert "a\ufffdforged" in printed.out
    assert not any(line.startswith("forged") for line in (printed.out + printed.err).splitlines())


WORKFLOW = "apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templates: [{container: {image: x}}]}"


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ("{name: wf}", "wf"),
        ("{generateName: wf-}", "wf-"),
        ('{name: "wf\\nforged\\u202e"}', "wf\ufffdforged\ufffd"),
    ],
)
def test_pods_of_a_kind_that_is_not_read_are_told_by_plan(metadata, name, capsys, tmp_path):
    """Each such object in one line, with what becomes of it; a Service, which makes none, is not."""
    file = tmp_path / "objects.yaml"
    file.write_text(
        f"{{{WORKFLOW}, metadata: {metadata}}}\n"
        "---\n{apiVersion: v1, kind: Service, metadata: {name: svc}, spec: {}}\n"
    )
    assert main(["plan", "-c", "docs/defragmentation/cluster.yaml", "-f", str(file)]) == 0
    stderr = capsys.readouterr().err
    assert f": {name}: Workflow of argoproj.io/v1alpha1 is not a supported kind" in stderr
    assert "svc" not in stderr
    assert len(stderr.splitlines()) == 1


def test_objects_that_others_plan_are_told_by_plan(capsys, tmp_path):
    """A TrainJob is planned as its JobSet, a PodCliqueSet by Grove: an empty table says neither."""
    file = tmp_path / "objects.yaml"
    pods = "containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: 8}}}]"
    file.write_text(
        "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: tj}, spec: {}}\n---\n"
        "{apiVersion: grove.io/v1alpha1, kind: PodCliqueSet, metadata: {name: pcs}, spec: {template: "
        f"{{cliques: [{{name: w, spec: {{replicas: 2, podSpec: {{{pods}}}}}}}]}}}}}}\n"
    )
    assert main(["plan", "-c", "docs/defragmentation/cluster.yaml", "-f", str(file)]) == 0
    train, grove = capsys.readouterr().err.splitlines()
    assert ": tj: TrainJob of trainer.kubeflow.org/v1alpha1 has no pods of its own" in train
    assert ": pcs: PodCliqueSet of grove.io/v1alpha1 is planned by Grove" in grove


def test_no_option_tells_numbers_in_words_of_python():
    """`invalid float value` is none of ours: each option has a type that says what would do."""
    plain = [option.dest for option in options(parser(*COMMANDS)) if option.type in (int, float)]
    assert plain == []


@pytest.mark.parametrize(
    ("host", "warned"), [("127.0.0.1", False), ("::1", False), ("localhost", False), ("0.0.0.0", True)]
)
def test_plain_http_that_others_reach_is_warned_of(host: str, warned: bool) -> None:
    """An address of this machine alone is not; a name is looked up by nobody."""
    assert is_loopback(host) is not warned
