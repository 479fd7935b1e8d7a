"""What Kueue reports about an object: its Workloads, found by owner, and why they do not run.

Kueue writes the reason into the conditions of a Workload (Kueue ff69552e,
apis/kueue/v1beta2/workload_types.go).
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.reservation import kueue_gang
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.discovery import served_path
from webhook.workloads.shared_gangs.pod_groups import POD_GANGS

KUEUE_SAYS = (("Evicted", "True"), ("QuotaReserved", "False"), ("Admitted", "False"), ("PodsReady", "False"))
"""Types and statuses of the conditions that explain why a Workload does not run, the most specific first."""


@dataclass(frozen=True, slots=True)
class KueueSays:
    """What Kueue reports about one Workload. `name`: the Workload's. `gang`: the name under which its place
    is reserved if no other gang holds it. `why`: why it does not run, "" if Kueue gives no reason.
    """

    name: str
    gang: str
    why: str


async def reasons_in(api: Api, namespace: str) -> dict[str, list[str]]:
    """Returns why Kueue does not admit, or has evicted, the Workloads of a namespace: sentences by the UID of
    each owner.
    """
    reasons: dict[str, list[str]] = {}
    for item in await _workloads(api, namespace):
        if why := _why(item.get("status") or {}):
            for owner in _owners(item):
                reasons.setdefault(str(owner.get("uid")), []).append(why)
    return reasons


async def said_of(api: Api, name: str) -> list[KueueSays]:
    """Returns what Kueue reports about the Workloads of the object NAMESPACE/KIND/NAME."""
    namespace, kind, own = name.split("/", 2)

    def is_of_object(item: Json) -> bool:
        # The Workload of a pod group has the group's name, and the pods as its owners.
        if kind in POD_GANGS and item["metadata"]["name"] == own:
            return True
        return any((owner.get("kind"), owner.get("name")) == (kind, own) for owner in _owners(item))

    return [_read(item, namespace) for item in await _workloads(api, namespace) if is_of_object(item)]


async def _workloads(api: Api, namespace: str) -> list[Json]:
    """Returns the Workloads of a namespace; none if Kueue is not installed, or they may not be read."""
    try:
        path = await served_path(api, "kueue.x-k8s.io", "workloads")
        if not path:
            return []
        folder, _, resource = path.rpartition("/")
        items, _ = await api.list(f"{folder}/namespaces/{namespace}/{resource}")
    except ApiError:
        return []
    return items


def _read(item: Json, namespace: str) -> KueueSays:
    name = str(item["metadata"]["name"])
    return KueueSays(name, kueue_gang(namespace, name), _why(item.get("status") or {}))


def _owners(item: Json) -> list[Json]:
    owners: list[Json] = item["metadata"].get("ownerReferences") or []
    return owners


def _why(status: Json) -> str:
    """Returns the message of the first condition in `KUEUE_SAYS` that the status has; "" for none."""
    conditions = {
        (str(condition.get("type")), str(condition.get("status"))): str(condition.get("message") or "")
        for condition in status.get("conditions") or []
    }
    return next((" ".join(conditions[says].split()) for says in KUEUE_SAYS if conditions.get(says)), "")
