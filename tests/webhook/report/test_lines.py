"""Where a field stands: the line that a person would click on."""

import pytest

from webhook.report.lines import line_of

FILE = """\
# a comment
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  labels:
    kai.scheduler/queue: research
    kai.scheduler: {queue: not-this}
spec:
  template:
    spec:
      containers:
      - name: side
        image: a
      - name: worker
        resources:
          limits:
            nvidia.com/gpu: 2
---
kind: Pod
metadata: {name: second,
  labels: {a: b}}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 2),
        ("kind", 3),
        ("metadata", 4),
        ("metadata.name", 5),
        ("metadata.labels.kai.scheduler/queue", 7),
        ("metadata.labels.kai.scheduler.queue", 8),
        ("spec.template.spec.containers", 12),
        ("spec.template.spec.containers[0]", 13),
        ("spec.template.spec.containers[1].name", 15),
        ("spec.template.spec.containers[1].resources.limits.nvidia.com/gpu", 18),
        ("spec.template.spec.containers[1].resources.limits['nvidia.com/gpu']", 18),
        ("spec.template.spec.containers[worker].resources", 16),
        ("/spec/template/spec/containers/1/resources/limits/nvidia.com~1gpu", 18),
        (("spec", "template", "spec", "containers", 1, "resources", "limits", "nvidia.com/gpu"), 18),
    ],
)
def test_each_way_to_write_a_path_finds_its_line(path, line):
    """Dotted paths, with keys that hold dots and slashes, JSON pointers and steps are understood."""
    assert line_of(FILE, 0, path) == line


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("metadata.annotations.bayplan.dev/gang", 4),
        ("spec.template.spec.containers[7].image", 12),
        ("spec.template.spec.containers[0].image.tag", 14),
        ("status", 2),
    ],
)
def test_a_field_that_is_not_there_gives_the_nearest_above(path, line):
    """What is missing is to be added there, so that is where to look."""
    assert line_of(FILE, 0, path) == line


def test_documents_are_counted_from_the_top():
    """The second document's lines are the file's lines."""
    assert line_of(FILE, 1, "metadata.labels.a") == 22


def test_an_empty_document_counts():
    """The index is that of the loader, which counts empty documents too."""
    assert line_of("---\n---\na: 1\nb: 2\n", 1, "b") == 4


def test_an_item_of_a_list_is_found_by_its_number():
    """What `kubectl get -o yaml` prints is a List; the item is meant, not the list. Items of a typed list
    have no kind, and those of several namespaces the same names.
    """
    text = """\
apiVersion: v1
kind: PodList
items:
- metadata:
    namespace: one
    name: a
- metadata:
    namespace: two
    name: a
- kind: List
  items:
  - kind: Job
    metadata:
      name: a
"""
    assert line_of(text, 0, "metadata.name", (0,)) == 6
    assert line_of(text, 0, "metadata.name", (1,)) == 9
    assert line_of(text, 0, "metadata.name", (2, 0)) == 14
    assert line_of(text, 0, "", (1,)) == 7
    assert line_of(text, 0, "spec", (2, 0)) == 12


def test_merged_keys_are_followed():
    """A field that comes from an anchor stands where the anchor is."""
    text = "base: &base\n  image: a\nspec:\n  <<: *base\n  name: b\n"
    assert line_of(text, 0, "spec.image") == 2


def test_json_has_lines_too():
    """A manifest in JSON is found the same way."""
    assert line_of('{\n  "kind": "Pod",\n  "metadata": {\n    "name": "a"\n  }\n}\n', 0, "metadata.name") == 4


@pytest.mark.parametrize("text", ["", "a: [", "\t- x", "[" * 5000, "a: &a [*a]\n"])
def test_a_text_that_does_not_parse_gives_the_first_line(text):
    """A finding always has a line; an unreadable file never makes the report fail."""
    assert line_of(text, 0, "a.b[0].c") == 1


def test_a_document_that_is_not_there_gives_the_first_line():
    """An index out of range is harmless."""
    assert line_of("a: 1\n", 5, "a") == 1
