"""Plays the operators of JobSets, PyTorchJobs and LeaderWorkerSets for as long as a run lasts.

`tests.e2e.operators` makes what an operator makes when it first sees an object. Here that is done again where
something of it is gone (evicted), its children go where it is suspended, and it is finished when its pods
have succeeded.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from tests.e2e.api import Api, ApiError, Json
from tests.e2e.operators import JOBSET, LWS, operate
from tests.e2e.polling import Polling

log = logging.getLogger(__name__)
FOLDERS = {
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
    "PyTorchJob": "/apis/kubeflow.org/v1/pytorchjobs",
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets",
}
DONE = {"JobSet": "Completed", "PyTorchJob": "Succeeded"}
OWNED = ("/apis/batch/v1/namespaces/{}/jobs", "/api/v1/namespaces/{}/pods")


class Again:
    """An API server's client for which what is there already is made: it is returned as it stands."""

    def __init__(self, api: Api) -> None:
        """Calls are those of `api`."""
        self._api = api

    def create(self, path: str, body: Json, **query: str) -> Json:
        """The object of that name, made where it is not there."""
        name = body["metadata"].get("name")
        if name:
            try:
                return self._api.get(f"{path}/{name}")
            except ApiError as error:
                if error.status != 404:
                    raise
        if body["kind"] == "StatefulSet":
            body = _labelled_as_selected(body)
        return self._api.create(path, body, **query)

    def __getattr__(self, name: str) -> Any:
        """Everything else as it is."""
        return getattr(self._api, name)


class Operators(Polling):
    """Looks at the objects a few times a second, from `with` to its end, in a thread of its own."""

    def __init__(self, api: Api, pause: float = 0.4) -> None:
        """`pause` is in seconds, between two looks."""
        super().__init__(api, "operators", pause)
        self._again: Any = Again(api)
        self._started: set[str] = set()
        self.faults: list[str] = []
        """What API servers and webhooks said no to, which a real operator would log and try again."""

    def look(self) -> None:
        """Does for each object what its operator does next."""
        for kind, folder in FOLDERS.items():
            try:
                for stored in self._api.items(folder):
                    self._look({**stored, "kind": kind, "apiVersion": "/".join(folder.split("/")[2:4])})
            except (ApiError, OSError, TimeoutError) as error:  # gone meanwhile, refused, away: again
                log.debug("operators: %s", error)
                self.faults.append(str(error))

    def _look(self, stored: Json) -> None:
        uid = stored["metadata"]["uid"]
        conditions = (stored.get("status") or {}).get("conditions", ())
        finished = any(entry["type"] in DONE.values() and entry["status"] == "True" for entry in conditions)
        if "deletionTimestamp" in stored["metadata"] or finished:
            return
        if _suspended(stored):
            if uid in self._started:
                self._started.discard(uid)
                self._remove_children(stored)
            return
        if stored["kind"] == "LeaderWorkerSet" and uid in self._started:
            self._number_workers(stored)
            if not self._has_all_leaders(stored):
                return  # its StatefulSet makes them again; a leader's workers go with it
        operate(self._again, self._in_order(stored) if stored["kind"] == "JobSet" else stored)
        self._started.add(uid)
        if stored["kind"] in DONE and self._succeeded(stored):
            self._finish(stored)

    def _in_order(self, stored: Json) -> Json:
        """The JobSet with those jobs alone that start: those before them are complete or have ready pods."""
        reached = {
            (job["metadata"]["labels"][f"{JOBSET}/replicatedjob-name"], status)
            for job in self._children(OWNED[0], stored)
            for status in ("Complete", "Ready")
            if _is_complete(job) or (status == "Ready" and job.get("status", {}).get("ready"))
        }
        jobs = stored["spec"]["replicatedJobs"]
        in_order = stored["spec"].get("startupPolicy", {}).get("startupPolicyOrder") == "InOrder"
        waits_for = [{(row["name"], row["status"]) for row in job.get("dependsOn", ())} for job in jobs]
        if in_order:
            waits_for = [{(job["name"], "Ready") for job in jobs[:number]} for number in range(len(jobs))]
        begun = [job for job, needed in zip(jobs, waits_for, strict=True) if needed <= reached]
        return {**stored, "spec": {**stored["spec"], "replicatedJobs": begun}}

    def _has_all_leaders(self, stored: Json) -> bool:
        folder = OWNED[1].format(stored["metadata"]["namespace"])
        name = stored["metadata"]["name"]
        pods = self._api.items(folder, labelSelector=f"{LWS}/name={name},{LWS}/worker-index=0")
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return len(alive) == stored["spec"].get("replicas", 1)

    def _number_workers(self, stored: Json) -> None:
        """LeaderWorkerSet's own webhook tells a worker its number; here it hears it afterwards."""
        folder = OWNED[1].format(stored["metadata"]["namespace"])
        query = f"{LWS}/name={stored['metadata']['name']}"
        for item in self._api.items(folder, labelSelector=query):
            if f"{LWS}/worker-index" not in item["metadata"]["labels"]:
                labels = {f"{LWS}/worker-index": item["metadata"]["name"].rpartition("-")[2]}
                self._api.merge(f"{folder}/{item['metadata']['name']}", {"metadata": {"labels": labels}})

    def _children(self, folder: str, stored: Json) -> list[Json]:
        uid = stored["metadata"]["uid"]
        listed = self._api.items(folder.format(stored["metadata"]["namespace"]))
        return [
            item
            for item in listed
            if any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences", ()))
        ]

    def _remove_children(self, stored: Json) -> None:
        for folder in OWNED:
            for item in self._children(folder, stored):
                path = f"{folder.format(stored['metadata']['namespace'])}/{item['metadata']['name']}"
                self._api.delete(path)

    def _succeeded(self, stored: Json) -> bool:
        """All Jobs of a JobSet are complete, all pods of a PyTorchJob have succeeded."""
        jobs, pods = (self._children(folder, stored) for folder in OWNED)
        if stored["kind"] == "JobSet":
            wanted = sum(job.get("replicas", 1) for job in stored["spec"]["replicatedJobs"])
            return len(jobs) == wanted and all(map(_is_complete, jobs))
        return bool(pods) and all(pod["status"].get("phase") == "Succeeded" for pod in pods)

    def _finish(self, stored: Json) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {
            "type": DONE[stored["kind"]],
            "status": "True",
            "reason": "Played",
            "message": "all pods have succeeded",
            "lastTransitionTime": now,
        }
        api_folder = FOLDERS[stored["kind"]].rpartition("/")
        namespace = stored["metadata"]["namespace"]
        path = f"{api_folder[0]}/namespaces/{namespace}/{api_folder[2]}/{stored['metadata']['name']}"
        self._api.merge(f"{path}/status", {"status": {"conditions": [condition]}})


def _is_complete(job: Json) -> bool:
    return any(entry["type"] == "Complete" for entry in job.get("status", {}).get("conditions", ()))


def _labelled_as_selected(stateful_set: Json) -> Json:
    """With the labels that LeaderWorkerSet writes on its StatefulSets. Kueue finds them by these; it opens
    its gates for pods whose StatefulSet it does not find, without their group and its assignment."""
    selected = stateful_set["spec"]["selector"]["matchLabels"]
    labels = {key: value for key, value in selected.items() if key != f"{LWS}/worker-index"}
    return {**stateful_set, "metadata": {**stateful_set["metadata"], "labels": labels}}


def _suspended(stored: Json) -> bool:
    spec = stored["spec"]
    return bool(spec.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"))
