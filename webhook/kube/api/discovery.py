"""Looks up which resources the API server serves.

Each missing kind is looked up again and again, since its CRD may be installed at any time. Dozens of watches
do that at the same moments, so they share each answer, for example the list of all API groups.

While an API server starts, its list of groups is incomplete, for seconds, and it answers 404 for versions
with CRDs, for milliseconds. Neither shows that a kind is absent. The answers that do are those for the group
alone and for the resource itself: they are 503 until the server knows all CRDs (kube-aggregator and
apiextensions-apiserver, `RegisterMuxAndDiscoveryCompleteSignal`), whichever of several servers gives them.
"""

from __future__ import annotations

from webhook.kube.api.client import Api, ApiError, Json


async def served_path(api: Api, group: str, resource: str) -> str:
    """Returns the API path of a resource; "" if it is not served.

    If several versions serve it, the path is in the preferred one, or else in the first of the others. The
    answer may be `client.SHARED_SECONDS` old. Raises `ApiError`, also while the API server starts.
    """
    if not group:
        return f"/api/v1/{resource}"
    try:
        for version in await served_versions(api, group):
            folder = f"/apis/{group}/{version}"
            if await _serves(api, folder, resource):
                return f"{folder}/{resource}"
    except (KeyError, TypeError) as error:  # for example, the JSON of a proxy
        raise ApiError(200, "", f"the answer on {group} is no discovery: {error}") from None
    return ""


async def served_versions(api: Api, group: str) -> list[str]:
    """Returns the versions of a group, the preferred one first; none if there is no such group. A group that
    is not listed is asked for by itself, once until it is listed again.
    """
    groups = (await _get(api, "/apis") or {"groups": ()})["groups"]
    discovery: Json | None = next((entry for entry in groups if entry["name"] == group), None)
    if discovery is None and group not in api.absent_groups:
        discovery = await _get(api, f"/apis/{group}")
    if discovery is None:
        api.absent_groups.add(group)
        return []
    api.absent_groups.discard(group)
    versions = (discovery["preferredVersion"], *discovery["versions"])
    return list(dict.fromkeys(entry["version"] for entry in versions))


async def _serves(api: Api, folder: str, resource: str) -> bool:
    """Returns whether a version serves a resource. A version that is not found is asked for the resource."""
    listed = await _get(api, folder)
    if listed is None:
        return await api.find(f"{folder}/{resource}", limit="1") is not None
    return any(served["name"] == resource for served in listed["resources"] or [])


async def _get(api: Api, path: str) -> Json | None:
    """Reads one object as `Api.get_shared` does; returns None if it does not exist."""
    try:
        return await api.get_shared(path)
    except ApiError as error:
        if error.status != 404:
            raise
        return None


def in_namespace(path: str, namespace: str) -> str:
    """Returns the path of a resource's objects in one namespace: /apis/batch/v1/namespaces/NAMESPACE/jobs."""
    folder, _, resource = path.rpartition("/")
    return f"{folder}/namespaces/{namespace}/{resource}"
