"""`bayplan plan` and `report` on objects whose replicas are gangs: what is the same is printed once."""

import io
import json
import sys

import pytest
import yaml

from tests.webhook.calls import EXAMPLES
from tests.webhook.workloads.objects import annotated, obj, pod_template
from webhook.cli.main import main

SUPERPOD = str(EXAMPLES / "clusters" / "superpod-32.yaml")


@pytest.fixture
def serving(tmp_path):
    """The file of an object that serves with this many replicas, each of a pod with this many GPUs."""

    def written(replicas, gpus=8, kind="Deployment"):
        container = {"name": "main", "image": "vllm", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
        manifest = {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": "serve", "namespace": "research"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "serve"}},
                "template": {"metadata": {"labels": {"app": "serve"}}, "spec": {"containers": [container]}},
            },
        }
        (tmp_path / "serve.yaml").write_text(yaml.safe_dump(manifest))
        return str(tmp_path / "serve.yaml")

    return written


@pytest.fixture
def groups(tmp_path):
    """The file of a LeaderWorkerSet of twelve groups of four whole nodes each."""
    container = {"name": "main", "image": "vllm", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    manifest = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve", "namespace": "research"},
        "spec": {
            "replicas": 12,
            "leaderWorkerTemplate": {"size": 4, "workerTemplate": {"spec": {"containers": [container]}}},
        },
    }
    (tmp_path / "groups.yaml").write_text(yaml.safe_dump(manifest))
    return str(tmp_path / "groups.yaml")


def planned(run, file, *words):
    """The lines that `bayplan plan` prints, without spaces at their ends."""
    return [line.rstrip() for line in run("plan", "-c", SUPERPOD, "-f", file, *words)[1].splitlines()]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_replicas_on_nodes_of_one_rack_share_a_row(run, serving, kind):
    """So do those without a place."""
    _, *rows = planned(run, serving(20, kind=kind))[:5]
    assert [row.split()[:3] for row in rows] == [
        [f"research/{kind}/serve/0–3", "admitted", "su-1/rack-1"],
        [f"research/{kind}/serve/4–7", "admitted", "su-1/rack-2"],
        [f"research/{kind}/serve/8–15", "admitted", "su-1/rack-3"],
        [f"research/{kind}/serve/16–19", "queued", "–"],
    ]
    assert "  4 nodes  " in rows[0]
    assert rows[0].endswith("1×main on dgx-05, 1×main on dgx-06, 1×main on dgx-07, 1×main on dgx-08")
    assert rows[2].endswith("1×main on dgx-20, … (8 nodes)")


def test_replicas_on_one_node_are_counted(run, serving):
    """Two nodes have two free GPUs each; the domain is the rack of all three nodes."""
    _, row = planned(run, serving(5, gpus=1))
    assert row.endswith("su-1/rack-4  what it uses  2×main on dgx-25, 2×main on dgx-26, 1×main on dgx-27")


def test_replicas_on_the_same_node_share_its_domain(run, serving):
    """The domain is the node."""
    _, row = planned(run, serving(2, gpus=1))
    assert row.endswith("su-1/rack-4/dgx-25  what it uses  2×main on dgx-25")


def test_replicas_that_wait_for_the_same_are_explained_once(run, serving):
    """How many of them, what is in the way, and how many replicas would work."""
    blank, heading, message = planned(run, serving(20))[5:]
    assert not blank
    assert heading == "research/Deployment/serve/16–19 (4 of 20 replicas), each: NoRoomNow"
    assert message == (
        "  1 pod (8 GPUs) fits the empty cluster but not now: the cluster has room for 0 of 1 pod now. "
        "Of 32 nodes, 16 are reserved by 16 replicas of the same Deployment, 14 have at most 7 of 8 "
        "nvidia.com/gpu free, 1 is cordoned and 1 carries the taint example.com/burn-in=true:NoSchedule. "
        "Would work now: 16 replicas."
    )


def test_a_terminal_shows_the_explanation_in_lines_of_its_width(serving, monkeypatch):
    """A terminal would break a line of 400 characters within words."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("NO_COLOR", "1")
    main(["plan", "-c", SUPERPOD, "-f", serving(20)])
    _, explanation = out.getvalue().split("NoRoomNow\n")
    lines = explanation.splitlines()
    assert len(lines) > 4
    assert all(line.startswith("  ") and len(line) <= 70 for line in lines)


def test_more_replicas_than_the_empty_cluster_has_room_for_are_told_how_many_fit_there(run, serving):
    """Each fits by itself, so without this sentence one would wait for ever."""
    *_, message = planned(run, serving(200))
    assert message.endswith(
        "Would work now: 16 replicas. All 200 replicas: 200 pods (1600 GPUs) do not fit the empty cluster: "
        "the whole cluster has room for 31 of 200 pods (248 GPUs). Of 32 nodes, 1 carries the taint "
        "example.com/burn-in=true:NoSchedule and 31 have room for a pod. Would work: 31 pods "
        "(spec.replicas: 31)."
    )


def test_a_refusal_of_all_replicas_is_printed_once(run, serving):
    """No node has 16 GPUs."""
    lines = planned(run, serving(3, gpus=16))
    assert [line.split(": ")[0] for line in lines if "PodFitsNoNode" in line] == [
        "research/Deployment/serve/0–2 (all 3 replicas), each"
    ]
    assert sum("No node takes a pod of main" in line for line in lines) == 1


def test_each_group_of_several_pods_has_a_row(run, groups):
    """Its pods are a gang with nodes of its own; only the groups without a place are together."""
    lines = planned(run, groups)
    assert [line.split()[0] for line in lines[1:5]] == [
        f"research/LeaderWorkerSet/serve/{index}" for index in ("0", "1", "2", "3–11")
    ]
    assert sum("all-reduce" not in line and "7.78 ms" in line for line in lines) == 1
    assert lines[-2] == "research/LeaderWorkerSet/serve/3–11 (9 of 12 replicas), each: NoRoomNow"
    assert "24 are reserved by 3 replicas of the same LeaderWorkerSet" in lines[-1]
    assert lines[-1].endswith("Would work now: 3 replicas.")


def test_gangs_of_several_objects_with_the_same_refusal_are_named_together(run, tmp_path):
    """The message is the same for both."""
    job = next(iter(yaml.safe_load_all((EXAMPLES / "job-unknown-topology.yaml").read_text())))
    jobs = [{**job, "metadata": {**job["metadata"], "name": name}} for name in ("a", "b")]
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(jobs))
    assert "research/Job/a, research/Job/b, each: UnknownTopology" in planned(run, str(tmp_path))


def test_equal_searches_are_explained_once(run, serving):
    """The 16 replicas with a place share that of the first; the other four have one of their own."""
    lines = planned(run, serving(20), "--explain")
    assert sum("nearest request admitted now: as asked" in line for line in lines) == 1
    assert lines.count("  nearest request admitted now: 16 replicas") == 1
    assert lines.count("    16 reserved by 16 replicas of the same Deployment") == 1


def test_jobs_that_start_together_have_no_nearest_request(run, tmp_path):
    """Requests are tried for one Job, and the first has a rack: the message names what works for all."""
    spec = {"parallelism": 8, "completions": 8, "template": pod_template(8)}
    jobs = [{"name": "slice", "replicas": 3, "template": {"spec": spec}}]
    rack = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.provider.com/topology-rack"}
    manifest = annotated(obj("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs}), rack)
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump(manifest))
    lines = planned(run, str(tmp_path), "--explain")
    assert any(line.endswith("Would work now: 1 Job.") for line in lines)
    assert not any("nearest request" in line for line in lines)


def test_a_shared_explanation_is_that_of_the_first_replica(run, serving):
    """The others are on other nodes, which the table names."""
    lines = planned(run, serving(20), "--explain")
    heading = lines.index("research/Deployment/serve/0–15 (16 of 20 replicas), each: Placed")
    assert lines[heading + 1].startswith("  the first: 1 pod on node su-1/rack-1/dgx-05; ")
    assert "  ranks of main: 0 on dgx-05" in lines


def test_replicas_on_the_same_node_have_one_message(run, serving):
    """So it is not that of the first only."""
    assert not [line for line in planned(run, serving(2, gpus=1), "--explain") if "the first" in line]


def test_replicas_of_unlike_pods_are_explained_apart(run, tmp_path):
    """The Jobs of a JobSet, each on a host of its own: one of eight GPUs, and two of four."""
    jobs = [
        {
            "name": name,
            "replicas": count,
            "template": {"spec": {"parallelism": 1, "completions": 1, "template": pod_template(gpus)}},
        }
        for name, count, gpus in (("large", 1, 8), ("small", 2, 4))
    ]
    spec = {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": jobs}
    alone = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}
    manifest = annotated(obj("jobset.x-k8s.io/v1alpha2", "JobSet", spec), alone)
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump(manifest))
    headings = [line for line in planned(run, str(tmp_path), "--explain") if line.endswith("Placed")]
    assert headings == [
        "team/JobSet/demo/0 (1 of 3 Jobs): Placed",
        "team/JobSet/demo/1–2 (2 of 3 Jobs), each: Placed",
    ]


def test_of_more_replicas_than_are_planned_it_says_how_many_are(run, serving):
    """The first 1,000 of 2,000 are planned."""
    lines = planned(run, serving(2000, gpus=16))
    assert "research/Deployment/serve/0–999 (1000 of 2000 replicas), each: PodFitsNoNode" in lines


def test_the_room_of_the_empty_cluster_is_compared_with_the_replicas_that_are_planned(run, serving):
    """And these are not called all of them."""
    out = "\n".join(planned(run, serving(2000)))
    assert "The first 1000 of 2000 replicas: 1000 pods (8000 GPUs) do not fit the empty cluster: " in out
    assert "All 1000 replicas" not in out


def test_an_admitted_object_with_a_warning_is_printed_once(run, serving):
    """It was printed for each replica with a place."""
    lines = planned(run, serving(2000))
    assert [line for line in lines if line.endswith("Placed")] == [
        "research/Deployment/serve/0–15 (16 of 2000 replicas), each: Placed"
    ]


def test_a_report_says_how_many_of_all_replicas_it_describes(run, serving):
    """The others are planned when they are created."""
    _, out, _ = run("report", "-c", SUPERPOD, "-f", serving(2000, gpus=16), "-o", "markdown")
    assert "1000 of 2000 replicas, each: No node takes a pod" in " ".join(out.split())


def test_the_json_has_an_entry_for_each_replica(run, serving):
    """With its own node; the nodes in the way are counted by the gang that reserves them."""
    gangs = json.loads("\n".join(planned(run, serving(20), "-o", "json")))["gangs"]
    assert [gang["name"] for gang in gangs] == [f"research/Deployment/serve/{n}" for n in range(20)]
    assert len({gang["domain"][-1] for gang in gangs if gang["decision"] == "admitted"}) == 16
    excluded = gangs[19]["search"]["nodes"]["excluded"]
    assert [excluded[f"reserved by research/Deployment/serve/{n}"] for n in range(16)] == [1] * 16
    assert gangs[19]["search"]["nearest"]["now"] == ["16 replicas"]


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_a_report_counts_the_places_of_many_replicas_by_rack(run, serving, form):
    """Sixteen sentences about sixteen nodes say less."""
    _, out, _ = run("report", "-c", SUPERPOD, "-f", serving(20), "-o", form)
    words = "16 replicas, 4 in su-1/rack-1, 4 in su-1/rack-2, 8 in su-1/rack-3"
    assert words in " ".join(out.split())


def test_a_report_counts_replicas_that_share_a_sentence(run, serving):
    """Eight pods of a GPU each are on one node, which is one result for the eight."""
    _, out, _ = run("report", "-c", SUPERPOD, "-f", serving(200, gpus=1))
    words = "153 replicas, 25 in su-1/rack-4, 32 in su-1/rack-1, 32 in su-1/rack-2, 64 in su-1/rack-3"
    assert words in " ".join(out.split())


def test_a_report_describes_few_places_one_by_one(run, groups):
    """Three racks are held."""
    _, out, _ = run("report", "-c", SUPERPOD, "-f", groups)
    assert " ".join(out.split()).count("would be placed: 4 pods on 4 nodes in rack") == 3


def test_kubectl_shows_one_warning_for_the_replicas_that_wait(run, groups):
    """It was one for each."""
    _, _, err = run("mutate", "-c", SUPERPOD, "-f", groups)
    (warning,) = [line for line in err.splitlines() if "queued" in line]
    assert warning.startswith(
        "Warning: research/LeaderWorkerSet/serve/3–11 (9 of 12 replicas) are each queued: 4 pods (32 GPUs)"
    )


def test_a_mode_that_only_warns_says_it_once_too(run, groups):
    """As what would be."""
    _, _, err = run("mutate", "-c", SUPERPOD, "-f", groups, "--mode", "warn")
    (warning,) = [line for line in err.splitlines() if "queued" in line]
    assert "would be queued: research/LeaderWorkerSet/serve/3–11 (9 of 12 replicas), each: 4 pods" in warning


def test_the_annotation_names_a_domain_once(run, serving):
    """A Deployment reserves nothing yet, so that each replica is planned for the same node."""
    _, out, _ = run("mutate", "-c", SUPERPOD, "-f", serving(20))
    note = json.loads(yaml.safe_load(out)["metadata"]["annotations"]["bayplan.dev/placement"])
    assert note["reserves"] == [["su-1", "rack-1", "dgx-05"]]
