"""Looks up which resources the API server serves.

Each missing kind is looked up again and again, since its CRD may be installed at any time. Dozens of watches
do that at the same moments, so they share each answer, for example the list of all API groups.
"""

from __future__ import annotations

from webhook.kube.api.client import Api, ApiError


async def served_path(api: Api, group: str, resource: str) -> str:
    """Returns the API path of a resource; "" if it is not served.

    If several versions serve it, the path is in the preferred one, or else in the first of the others. The
    answer may be `client.SHARED_SECONDS` old. Raises `ApiError`.
    """
    if not group:
        return f"/api/v1/{resource}"
    try:
        groups = (await api.get_shared("/apis"))["groups"]
        discovery = next((entry for entry in groups if entry["name"] == group), None)
        if discovery is None:
            return ""
        versions = [
            discovery["preferredVersion"]["version"],
            *(entry["version"] for entry in discovery["versions"]),
        ]
        for version in dict.fromkeys(versions):
            listed = await api.get_shared(f"/apis/{group}/{version}")
            if any(served["name"] == resource for served in listed["resources"] or []):
                return f"/apis/{group}/{version}/{resource}"
    except ApiError as error:
        if error.status != 404:
            raise
    except (KeyError, TypeError) as error:  # for example, the JSON of a proxy
        raise ApiError(200, "", f"the answer on {group} is no discovery: {error}") from None
    return ""
