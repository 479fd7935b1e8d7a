"""AdmissionReviews on the wire: what is a bad call, and how an answer is written."""

from __future__ import annotations

import base64
from contextlib import suppress

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.jsontools.depth import DEPTH_LIMIT
from webhook.wire.review import BODY_LIMIT, BadCall, Response, decode, encode, fit_warnings

GOOD = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "u-1",
        "kind": {"group": "batch", "version": "v1", "kind": "Job"},
        "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
        "name": "train",
        "namespace": "ml",
        "operation": "CREATE",
        "userInfo": {"username": "ann", "groups": ["dev"]},
        "object": {"apiVersion": "batch/v1", "kind": "Job"},
        "dryRun": True,
    },
}


def _with(**changes: object) -> bytes:
    return orjson.dumps({**GOOD, "request": {**GOOD["request"], **changes}})  # type: ignore[dict-item]


def test_a_review_is_decoded_whole() -> None:
    """Every field that the decision needs arrives."""
    request = decode(orjson.dumps(GOOD))
    assert (request.uid, request.operation, request.dry_run) == ("u-1", "CREATE", True)
    assert request.kind.kind == "Job"
    assert request.resource.resource == "jobs"
    assert request.user_info.groups == ("dev",)


def test_an_object_in_a_namespace_is_named_whole_and_a_namespace_is_in_none() -> None:
    """The API server sends a Namespace's own name as its namespace."""
    namespace = {"group": "", "version": "v1", "kind": "Namespace"}
    assert decode(_with()).display_name == "ml/Job/train"
    assert decode(_with(kind=namespace, name="ml")).display_name == ""


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "no JSON: line 1"),
        (b"[]", 400, "expected kind AdmissionReview, found a JSON array"),
        (orjson.dumps({**GOOD, "kind": "Pod"}), 400, 'found "Pod"'),
        (orjson.dumps({**GOOD, "apiVersion": "admission.k8s.io/v1beta1"}), 400, "expected apiVersion"),
        (orjson.dumps({**GOOD, "request": None}), 400, "has no request"),
        (_with(uid=""), 400, "request.uid is missing"),
        (_with(uid=7), 400, "request.uid is missing"),
        (_with(operation="PATCH"), 400, "one of CREATE, UPDATE, DELETE, CONNECT"),
        (_with(kind="Job"), 400, "request.kind is no mapping"),
        (_with(resource={"group": "batch", "version": "v1"}), 400, "request.resource.resource is missing"),
        (_with(object=[1]), 400, "request.object is no object"),
        (_with(namespace=3), 400, "request.namespace is no string"),
        (_with(namespace="ml#x"), 400, 'request.namespace is "ml#x", which is no name of a namespace'),
        (_with(namespace=".."), 400, "no name of a namespace"),
        (_with(namespace="m" * 64), 400, "no name of a namespace"),
        (_with(uid="u" * 4097), 400, "request.uid has 4097 characters, more than the limit of 4096"),
        (_with(userInfo={"username": "a" * 4097}), 400, "request.userInfo.username has 4097 characters"),
        (_with(kind={"version": "v1", "kind": "K" * 4097}), 400, "request.kind.kind has 4097 characters"),
        (_with(dryRun="yes"), 400, "request.dryRun"),
        (b" " * (BODY_LIMIT + 1), 413, "more than the limit"),
    ],
)
def test_a_bad_call_says_what_is_wrong_with_it(body: bytes, status: int, words: str) -> None:
    """Each is a 4xx that names the field."""
    with pytest.raises(BadCall) as caught:
        decode(body)
    assert caught.value.status == status
    assert words in str(caught.value)


def test_a_request_may_be_nested_up_to_the_limit_and_no_deeper() -> None:
    """One level more than the limit is a bad call, not a recursion error later."""

    def nested(levels: int) -> bytes:
        value: object = {}
        for _ in range(levels):
            value = {"a": value}
        return _with(object=value)

    assert decode(nested(DEPTH_LIMIT - 3)).object is not None
    with pytest.raises(BadCall, match="nested deeper than"):
        decode(nested(DEPTH_LIMIT + 1))
    with pytest.raises(BadCall):
        decode(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text(max_size=3), st.lists, max_leaves=5).map(orjson.dumps)
)
@settings(max_examples=200)
def test_whatever_bytes_arrive_the_answer_is_a_request_or_a_bad_call(body: bytes) -> None:
    """Nothing else is ever raised."""
    with pytest.raises(BadCall):
        decode(body)


@given(
    st.dictionaries(
        st.sampled_from(sorted(GOOD["request"])),  # type: ignore[arg-type]
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.text(max_size=4)
        | st.lists(st.none())
        | st.just({}),
    )
)
@settings(max_examples=200)
def test_a_review_with_fields_of_other_types_never_breaks_the_decoder(changes: dict[str, object]) -> None:
    """Each field may be anything; the outcome is a request or a bad call in words."""
    with suppress(BadCall):
        assert decode(_with(**changes)).uid


def test_an_allowed_answer_carries_the_patch_with_its_type() -> None:
    """The patch is base64 of the RFC 6902 list."""
    patch = [{"op": "add", "path": "/a", "value": 1}]
    answer = orjson.loads(encode("u-1", Response(True, patch)))["response"]
    assert answer["uid"] == "u-1"
    assert answer["patchType"] == "JSONPatch"
    assert orjson.loads(base64.b64decode(answer["patch"])) == patch


def test_an_answer_without_changes_has_no_patch_at_all() -> None:
    """An empty patch is left out, as the API server wants it."""
    assert orjson.loads(encode("u-1", Response(True)))["response"] == {"uid": "u-1", "allowed": True}


def test_a_refusal_carries_status_code_reason_and_message_and_never_a_patch() -> None:
    """kubectl prints the message as it is."""
    refused = Response(False, [{"op": "add", "path": "/a", "value": 1}], 422, "Invalid", "too many slices")
    answer = orjson.loads(encode("u-1", refused))["response"]
    assert answer["status"] == {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": "too many slices",
    }
    assert "patch" not in answer


QUEUED = (
    "research/JobSet/pretrain is queued: 8 pods (64 GPUs) required in one rack fit the empty cluster but not "
    "now: the best rack, su-1/rack-1, has room for 4 of 8 pods (32 GPUs) now. Of 32 nodes, 14 have at most 7 "
    "of 8 nvidia.com/gpu free. Would work now: 4 pods, or required at cloud.provider.com/topology-block."
)


def test_each_sentence_of_a_long_warning_is_a_line_that_says_what_it_is_about() -> None:
    """kubectl prints each line once, also where another object of the same `apply` has the same to say."""
    about = "research/JobSet/pretrain: "
    sentences = QUEUED.split(". ")
    assert fit_warnings([QUEUED]) == [
        f"{sentences[0]}.",
        f"{about}{sentences[1]}.",
        f"{about}{sentences[2]}",
    ]
    other = QUEUED.replace("pretrain", "other")
    assert len(set(fit_warnings([QUEUED, other]))) == 6


def test_short_sentences_of_a_warning_share_a_line() -> None:
    """As long as they are within the width."""
    assert fit_warnings(["It fits. Nothing is held."]) == ["It fits. Nothing is held."]
    long = "x" * 118 + "."
    assert fit_warnings([f"{long} It fits. Nothing is held."]) == [long, "It fits. Nothing is held."]


@pytest.mark.parametrize("before", ["would be refused", "would be queued: a/Job/b", "policy 'nccl'"])
def test_what_a_warning_is_about_stands_before_each_sentence(before: str) -> None:
    """An object, a policy, and what would have been done."""
    first, second = (f"{letter * 100}." for letter in "XY")
    assert fit_warnings([f"{before}: {first} {second}"]) == [f"{before}: {first}", f"{before}: {second}"]


def test_a_warning_about_a_policy_alone_says_first_which_object_it_is_about() -> None:
    """Of four Jobs that name a scheduler which nobody runs kubectl told of one: it leaves out equal lines."""
    fault, advice = f"policy 'nccl': {'X' * 100}.", "What would work: nothing of the kind, or all of it."
    lines = [fit_warnings([f"{fault} {advice}"], about) for about in ("a/Job/b", "a/Job/c")]
    second = f"policy 'nccl': {advice}"
    assert lines == [[f"a/Job/b: {fault}", second], [f"a/Job/c: {fault}", second]]
    for text in ("a/PodGroup/d is queued", "would be refused: a/Job/b: no"):
        assert fit_warnings([text], "a/Job/b") == [text]


def test_a_long_sentence_is_broken_after_a_clause_and_no_word_is_lost() -> None:
    """Within the length that the API server never cuts; a key is broken only where nothing else helps."""
    causes = ", ".join(f"{count} carry the taint example.com/burn-in-{count}" for count in range(30))
    lines = fit_warnings([f"a/Job/b: {causes}"])
    assert max(map(len, lines)) <= 256
    assert all(line.startswith("a/Job/b: ") for line in lines)
    assert all(line.endswith(",") for line in lines[:-1])
    assert " ".join(line.removeprefix("a/Job/b: ") for line in lines) == causes
    assert [len(line) for line in fit_warnings(["x" * 600])] == [256, 256, 88]


def test_warnings_stop_at_4096_characters_and_are_said_once() -> None:
    """More would be dropped by the API server anyway."""
    lines = fit_warnings([f"{i} " + "x" * 100 for i in range(100)] * 2)
    assert sum(map(len, lines)) <= 4096
    assert len(set(lines)) == len(lines)
