"""What policies change, as a journal keeps it and a replay compares it."""

from __future__ import annotations

import pytest

from webhook.journal.changes import changes_differ, field_changes

AFFINITY = {"nodeAffinity": {"required": [{"key": "a", "values": ["x", "y"]}]}}


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        (
            ("add", "/metadata/labels", {"team": "a", "b": "c"}),
            {"metadata.labels.team": '"a"', "metadata.labels.b": '"c"'},
        ),
        (("replace", "/spec/priority", 5), {"spec.priority": "5"}),
        (("add", "/spec/on", False), {"spec.on": "false"}),
        (("add", "/spec/map", {}), {"spec.map": "{}"}),
        (("remove", "/spec/containers/0/args", None), {"spec.containers[0].args": ""}),
        (("add", "/metadata/annotations/a.b~1c", "d"), {"metadata.annotations[a.b/c]": '"d"'}),
        (("add", "/spec/replicaSpecs/²/replicas", 1), {"spec.replicaSpecs.².replicas": "1"}),
        (
            ("add", "/spec/affinity", AFFINITY),
            {
                "spec.affinity.nodeAffinity.required[0].key": '"a"',
                "spec.affinity.nodeAffinity.required[0].values": '["x","y"]',
            },
        ),
    ],
)  # fmt: skip
def test_a_patch_is_told_by_fields_with_their_values(operation, fields):  # type: ignore[no-untyped-def]
    """Down to single values; a removed field has none."""
    op, path, value = operation
    assert field_changes([{"op": op, "path": path, "value": value}], "Pod") == fields


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("/spec/containers/0/env/0/value", "s3cr3t", "Pod"),
        ("/spec/containers/0/env/3", {"name": "A", "value": "s3cr3t"}, "Pod"),
        ("/spec/containers/0/env", [{"name": "A", "value": "s3cr3t"}], "Pod"),
        ("/spec/containers", [{"env": [{"name": "A", "value": "s3cr3t"}]}], "Pod"),
        ("/spec/driver/envVars/A", "s3cr3t", "SparkApplication"),
        ("/spec/driver/envVars", {"A": "s3cr3t"}, "SparkApplication"),
        ("/spec/runtimeEnvYAML", "A: s3cr3t", "RayJob"),
        ("/data/token", "s3cr3t", "Secret"),
        ("/data", {"token": "s3cr3t"}, "ConfigMap"),
        ("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration", "s3cr3t", "Pod"),
    ],
)
def test_what_may_be_secret_is_left_out_wherever_a_patch_begins(path, value, kind):  # type: ignore[no-untyped-def]
    """And that it is left out is told."""
    fields = field_changes([{"op": "add", "path": path, "value": value}], kind)
    assert "s3cr3t" not in str(fields)
    assert "(left out)" in fields.values()


def test_an_empty_variable_is_no_secret():
    """It is told as it is."""
    fields = field_changes([{"op": "add", "path": "/spec/containers/0/env/0/value", "value": ""}], "Pod")
    assert fields == {"spec.containers[0].env[0].value": '""'}


def test_another_value_of_the_same_field_is_a_difference():
    """With both values; what is alike is not told."""
    was, now = {"a": "1", "b": "2", "c": "", "same": "3"}, {"b": "4", "c": '"x"', "d": "5", "same": "3"}
    words, fields = changes_differ(was, now)
    assert words == (
        'also sets d to 5; no longer sets a to 1; now sets b to 4 (was 2), sets c to "x" (was removed)'
    )
    assert fields == ("d", "a", "b", "c")
    assert changes_differ(was, was) == ("", ())


def test_long_values_are_compared_whole_though_only_their_beginning_is_kept():
    """By a digest."""
    long = [field_changes([{"op": "add", "path": "/a", "value": "x" * 5000 + end}], "Pod") for end in "yz"]
    assert max(map(len, long[0].values())) < 1100
    assert changes_differ(*long)[1] == ("a",)
