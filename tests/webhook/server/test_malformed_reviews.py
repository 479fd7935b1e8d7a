"""Reviews with anything wrong in them: an answer in words or a 4xx, never a 5xx and never a traceback.

`make attack` sends 100,000 of them to a real cluster.
"""

from __future__ import annotations

import copy
import logging
from typing import Any

import orjson
import pytest

from tests.attack.reviews import OBJECTS, review
from tests.webhook import calls
from tests.webhook.calls import Serve

JSON = {"Content-Type": "application/json"}
NO_METADATA: tuple[Any, ...] = (
    "text",
    1,
    1.5,
    True,
    [],
    ["a"],
    [{}],
    None,
    {"annotations": "a"},
    {"labels": [1]},
)
NO_ANNOTATIONS = ({"annotations": ["a"]}, {"ownerReferences": "a"}, {"ownerReferences": [1]}, {"name": {}})


def malformed() -> list[bytes]:
    """Every kind with metadata that are none, new, of old and of another API group; and the first few hundred
    fuzzed reviews.
    """
    bodies = []
    for obj in OBJECTS:
        for metadata in (*NO_METADATA, *NO_ANNOTATIONS):
            bad = {**copy.deepcopy(obj), "metadata": metadata}
            bodies.append(calls.review(bad))
            bodies.append(calls.review({**bad, "apiVersion": "example.com/v1"}))  # the same kind of others
            bodies.append(calls.review(obj, operation="UPDATE", old=bad))
    bodies += [review(number) for number in range(300)]
    return [orjson.dumps(body) for body in bodies]


def test_a_fuzzed_review_is_the_same_each_time() -> None:
    """Whatever was made before: what one review changes is no part of the next."""
    first = [orjson.dumps(review(number)) for number in range(300)]
    assert [orjson.dumps(review(number)) for number in range(300)] == first


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
async def test_no_review_is_answered_with_an_internal_error(
    serve: Serve, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is no mapping, no text or no number where the API has one."""
    with caplog.at_level(logging.ERROR, logger="bayplan"):
        async with serve("superpod-32") as asked:
            for body in malformed():
                answer = await asked.client.post(path, data=body, headers=JSON)
                text = await answer.text()
                assert answer.status in (200, 400), (answer.status, text, body)
                assert "Traceback" not in text
    assert not caplog.records
