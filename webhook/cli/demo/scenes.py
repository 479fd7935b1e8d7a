"""The examples of the demo: the story on one cluster, and for `--all` several clusters, each with its
examples.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoScene:
    """A cluster (files in `manifests/examples/clusters`), and the examples that are applied to it, in this
    order.
    """

    title: str
    clusters: tuple[str, ...]
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoryStep:
    """An example to apply, with an explanation. `ended`: the gang that ends before the example is applied;
    "" for none.
    """

    example: str
    text: str
    ended: str = ""


STORY_CLUSTER = "superpod-32"
STORY = (
    StoryStep(
        "job-six-nodes-one-rack",
        "Six whole nodes, in one rack if they fit. Pod affinity would split them over two half-used racks.",
    ),
    StoryStep("jobset-64-gpus", "Eight nodes that must be in one rack. The only whole rack is held now."),
    StoryStep("job-nine-nodes-one-rack", "Nine nodes in one rack of eight: it would wait forever."),
    StoryStep("job-without-resources", "One GPU, and no word about cpu and memory: policies fill them in."),
    StoryStep(
        "jobset-64-gpus",
        "The six nodes' job ends, and its place is released. In a cluster the leader lets the next gang in; "
        "here the JobSet asks again.",
        ended="research/Job/pretrain-medium",
    ),
)
NEXT = (
    ("demo --all", "all examples: NVL72, zones, MIG"),
    ("plan --explain -c CLUSTER -f FILE", "each level, and what fits there"),
    ("mutate -o diff -c CLUSTER -f FILE", "what would be written, as a diff"),
    ("report --kubeconfig FILE", "what would change of all that runs"),
)
"""Commands to try after the demo, and what each of them shows."""

SCENES = (
    DemoScene(
        "one SuperPOD unit: 32 H100 nodes in 4 racks, some of it in use",
        ("superpod-32",),
        (
            "job-nvlink-domain",
            "job-without-resources",
            "job-two-nodes-one-rack",
            "job-six-nodes-one-rack",
            "jobset-64-gpus",
            "job-unknown-level",
            "job-unknown-topology",
        ),
    ),
    DemoScene(
        "eight GB200 NVL72 racks, with 18, 18, 17, 16, 15, 14, 11 and 10 trays",
        ("nvl72-8racks",),
        ("job-nvl72-72-gpus", "rayjob-64-gpus", "job-76-gpus-one-rack"),
    ),
    DemoScene(
        "the same racks when no more than 16 trays of any are free",
        ("nvl72-8racks", "nvl72-in-use"),
        ("job-nvl72-72-gpus",),
    ),
    DemoScene(
        "two zones of two racks",
        ("two-zones",),
        ("job-zone-required-rack-preferred", "job-preferred-above-required"),
    ),
    DemoScene(
        "a pool of MIG boards",
        ("mig-pool",),
        ("pod-too-many-mig-slices", "pod-unknown-mig-profile", "pytorchjob-on-mig"),
    ),
    DemoScene(
        "both fabrics in one cluster",
        ("superpod-32", "nvl72-8racks"),
        ("rayjob-two-topologies",),
    ),
)
