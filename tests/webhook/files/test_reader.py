"""Files and standard input: how much is read."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from planner.model.errors import InputError
from webhook.files import reader


@pytest.mark.parametrize("path", ["pod.yaml", "-"])
def test_the_limit_of_a_file_holds_for_standard_input_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Up to the limit the content is read; one byte more is an error that names the limit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reader, "FILE_LIMIT", 2**20)

    def values(size: int) -> list[object]:
        content = b"kind: Pod #".ljust(size, b"#")
        Path("pod.yaml").write_bytes(content)
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        return [document.value for document in reader.documents([path])]

    assert values(2**20) == [{"kind": "Pod"}]
    with pytest.raises(InputError, match="larger than 1 MiB"):
        values(2**20 + 1)


@pytest.mark.parametrize("name", ["pod.yaml", "pod.json"])
@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ('{"kind": "Pod", "kind": "Job"}', "kind"),
        ('{"kind": "Pod", "spec": [{"a": {"b": 1, "c": 2, "b": 1}}]}', "b"),
        ('{"kind": "Pod", "spec": [{"a": 1}, {"a": 1}, {"b": {"a": 1}}]}', None),
    ],
)
def test_a_key_that_occurs_twice_in_an_object_is_an_error(
    tmp_path: Path, name: str, text: str, repeated: str | None
) -> None:
    """It would be unknown which value counts. Other objects may have the same key."""
    file = tmp_path / name
    file.write_text(text)
    if repeated is None:
        assert len(reader.documents([str(file)])) == 1
    else:
        with pytest.raises(InputError, match=f"key '{repeated}' occurs twice"):
            reader.documents([str(file)])


def test_items_of_a_typed_list_have_the_kind_of_the_list(tmp_path: Path) -> None:
    """The API server leaves it out: `kubectl get --raw /api/v1/nodes`. A plain List says nothing of them."""
    file = tmp_path / "nodes.json"
    file.write_text('{"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]}')
    (item,) = reader.objects([str(file)])
    assert item.value == {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    file.write_text('{"kind": "List", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]}')
    with pytest.raises(InputError, match="it has no kind"):
        reader.objects([str(file)])
