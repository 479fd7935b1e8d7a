"""What the demo shows: a few clusters, and on each the examples that it is there for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoScene:
    """A cluster (files of `manifests/examples/clusters`) and the examples applied to it, in order."""

    title: str
    clusters: tuple[str, ...]
    examples: tuple[str, ...]


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
