"""The parameter objects of policies: what the watches of their kinds lack, and what that stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from webhook.kube.api import reflector as module
from webhook.kube.api.client import Api, ApiError
from webhook.kube.state.param_watch import ParamsWatch
from webhook.policy.loading.load import load
from webhook.policy.model.policy import ParamKind

Json = dict[str, Any]

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limit}
spec:
  paramKind: {apiVersion: example.com/v1, kind: Limit}
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "params.most > 1"}]
"""


class Answering(Api):
    """An API server that gives one answer to each request."""

    def __init__(self, answer: Json | ApiError) -> None:
        self.answer = answer

    async def get(self, path: str, **query: str) -> Json:
        """The resources of `example.com/v1`."""
        if isinstance(self.answer, ApiError):
            raise self.answer
        return self.answer


@asynccontextmanager
async def followed(api: Api) -> AsyncIterator[ParamsWatch]:
    """A watch of the parameters of `POLICY`."""
    params = ParamsWatch(api)
    params.follow(load([("policy.yaml", POLICY)]))
    try:
        yield params
    finally:
        await params.close()


async def until(holds: Any) -> None:
    """Waits until this holds, for five seconds at most."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - no event is set for a problem
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)


NO_VERSION = ApiError(404, "NotFound", "the server could not find the requested resource")
NO_KIND: Json = {"resources": [{"name": "others", "kind": "Other"}]}


@pytest.mark.parametrize("answer", [NO_VERSION, NO_KIND], ids=["no version", "no kind"])
async def test_a_kind_that_is_not_served_has_no_objects(answer: Json | ApiError) -> None:
    """A replica that waited for the CRD would not be ready, whatever else its policies say."""
    async with followed(Answering(answer)) as params:
        await until(lambda: not params.waiting())
        assert (params.objects(ParamKind("example.com/v1", "Limit")), params.problem()) == ([], "")


class Starting(Api):
    """An API server that lists `example.com/v1`, and serves its Limits, but not yet the list of its kinds."""

    def __init__(self) -> None:
        """Without a connection."""

    async def get(self, path: str, **query: str) -> Json:
        """The groups."""
        version = {"version": "v1"}
        if path == "/apis":
            group = {"name": "example.com", "preferredVersion": version, "versions": [version]}
            return {"groups": [group]}
        raise NO_VERSION

    async def list(self, path: str, keep: Any = dict, **query: str) -> tuple[list[Any], str]:
        """One Limit."""
        assert path == "/apis/example.com/v1/limits"
        return [keep({"metadata": {"name": "most", "namespace": "a", "resourceVersion": "3"}})], "9"


async def test_a_kind_that_a_starting_server_does_not_list_yet_is_read() -> None:
    """Policies would say for seconds that their parameters do not exist."""
    async with followed(Starting()) as params:
        await until(lambda: not params.waiting())
        assert len(params.objects(ParamKind("example.com/v1", "Limit"))) == 1


async def test_a_kind_that_may_not_be_read_is_waited_for_with_the_reason() -> None:
    """The administrator sees at /readyz which right is missing."""
    async with followed(Answering(ApiError(403, "Forbidden", "limits may not be listed"))) as params:
        await until(params.problem)
        assert "limits may not be listed (403 Forbidden)" in params.waiting()
        assert params.waiting() == params.problem()
