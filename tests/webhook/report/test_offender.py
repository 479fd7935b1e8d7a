"""A refusal points at the field that caused it, and from there at its line."""

import pytest
import yaml

from planner.model.podgroup import PodGroup
from webhook.report.lines import line_of
from webhook.report.offender import fields_named, offending_field, resources_named, warned_field

TEXT = """\
apiVersion: batch/v1
kind: Job
metadata:
  annotations:
    kai.scheduler/topology: nvl72
    kai.scheduler/topology-required-placement: cloud.provider.com/topology-rack
spec:
  template:
    spec:
      containers:
        - name: trainer
          resources:
            limits: {cpu: "64"}
            requests:
              cpu: "64"
              nvidia.com/mig-1g.10gb: 9
"""
TOPOLOGY = "metadata.annotations[kai.scheduler/topology]"
REQUIRED = "metadata.annotations[kai.scheduler/topology-required-placement]"
OTHER = "spec.template.metadata.annotations[kueue.x-k8s.io/podset-required-topology]"
ORIGINS = ((TOPOLOGY, "topology", "nvl72"), (REQUIRED, "required", "cloud.provider.com/topology-rack"))
MIG = "spec.template.spec.containers[0].resources.requests[nvidia.com/mig-1g.10gb]"


def field(reason, message, origins=ORIGINS):
    """The field that is found for a refusal of the Job above."""
    return offending_field(PodGroup("a", (), origins=origins), reason, message, yaml.safe_load(TEXT))


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("UnknownTopology", "no topology is named nvl72", TOPOLOGY),
        ("UnknownLevel", "nvl72 has no such level", REQUIRED),
        ("TooLargeForLevel", "19 pods (76 GPUs) required in one rack can never fit", REQUIRED),
        ("SlicesDoNotDivide", "7 pods are no whole number of slices of 2", REQUIRED),
        ("PodFitsNoNode", "One pod of main asks for 9 nvidia.com/mig-1g.10gb", MIG),
        ("NoRoomNow", "0 of 19 pods fit in the best rack", REQUIRED),
    ],
)
def test_each_reason_finds_its_field(reason, message, expected):
    """A topology, a level or a resource is pointed at, as the reason and the words say."""
    assert field(reason, message) == expected


def test_a_field_that_the_message_names_is_the_one():
    """Where the planner names the field itself, nothing is guessed."""
    assert field("MultipleTopologies", f"{TOPOLOGY} names nvl72") == TOPOLOGY


def test_of_two_that_contradict_each_other_the_later_is_shown():
    """The first one set the topology, the second one broke with it."""
    origins = (*ORIGINS, (OTHER, "required", "nvidia.com/gpu.clique"))
    assert field("MultipleTopologies", "two topologies", origins) == OTHER


def test_a_gang_that_asked_for_nothing_points_at_no_field():
    """Then the object itself is shown."""
    assert field("NoRoomNow", "0 of 19 pods fit", origins=()) == ""


def test_the_field_leads_to_its_line():
    """What is found is what `line_of` understands."""
    assert line_of(TEXT, 0, REQUIRED) == 6
    assert line_of(TEXT, 0, MIG) == 16


def test_the_longest_resource_name_wins():
    """`nvidia.com/mig-1g.10gb` is meant, not `cpu`, where both stand in the message."""
    paths = list(resources_named(yaml.safe_load(TEXT), "nvidia.com/mig-1g.10gb and cpu"))
    assert paths[0] == MIG
    assert len(paths) == 3


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("NCCL_IB_HCA=mlx5_1 means every adapter", "spec.containers[0].env[1]"),
        ("the claim gpus takes all GPUs of a node", "spec.resourceClaims[0]"),
        ("no template named four-gpus; it has eight-gpus", "spec.resourceClaims[0]"),
        ("names the scheduler a, and schedulerName b would work", "spec.schedulerName"),
        ("runai/queue is unknown", "metadata.labels[runai/queue]"),
        ("preferred example.com/rack has no effect", "metadata.annotations[level]"),
        ("4 pods (16 GPUs) can never fit", "spec.containers[0].resources.limits[nvidia.com/gpu]"),
        ("the gpuset and NCCL_IB_HCA_LIST are others", ""),
        ("annotation level is not read. What would work: runai/queue", "metadata.annotations[level]"),
    ],
)
def test_a_message_finds_what_it_names(message, expected):
    """Environment, claims, labels and fields by their whole names; annotations by what they say."""
    pod = {
        "metadata": {"labels": {"runai/queue": "a"}, "annotations": {"level": "example.com/rack"}},
        "spec": {
            "schedulerName": "c",
            "containers": [
                {
                    "name": "t",
                    "env": [{"name": "A"}, {"name": "NCCL_IB_HCA", "value": "mlx5_1"}],
                    "resources": {"limits": {"cpu": 1, "nvidia.com/gpu": 4}},
                }
            ],
            "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "four-gpus"}],
        },
    }
    assert next(fields_named(pod, message), "") == expected


def test_a_warning_on_an_admitted_gang_points_at_the_level_of_which_it_speaks():
    """Not at what the plan wrote, which names the level's label too; one that names a field, at that."""
    preferred = REQUIRED.replace("required", "preferred")
    origins = ((REQUIRED, "required", "host"), (preferred, "preferred", "rack"))
    group = PodGroup("team/Job/x", (), origins=origins)
    text = "the preferred level rack has no effect, for the required level host is finer"
    assert warned_field(group, [text]) == preferred
    assert warned_field(group, ["is suspended", f"{REQUIRED} has no effect there"]) == REQUIRED
    assert warned_field(group, ["is suspended"]) == ""
