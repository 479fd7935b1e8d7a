"""Compares the versions in a cluster with those that Bayplan was tested with: others are reported, none is
refused.
"""

from __future__ import annotations

from collections import defaultdict

from webhook.kube.api.client import Api
from webhook.kube.state.findings import CheckFinding
from webhook.workloads import KINDS, WorkloadKind

TRIED = ((1, 35), (1, 37))
"""The oldest and the newest minor version of Kubernetes with which the end-to-end tests were run."""

_SUBJECT = "versions"


async def examine_versions(api: Api, version: str) -> list[CheckFinding]:
    """Returns findings for the `version` of the API server, such as v1.36.3, and for the versions of the
    workload kinds that it serves.
    """
    kubernetes = _kubernetes(version)
    unknown = await _unknown_kinds(api)
    if kubernetes or unknown:
        return [*([kubernetes] if kubernetes else []), *unknown]
    return [CheckFinding(_SUBJECT, "ok", "Kubernetes and the workload kinds are in versions that were tried")]


def _kubernetes(version: str) -> CheckFinding | None:
    """Returns the finding for an API server whose version was not tested, None for a tested one."""
    parts = version.removeprefix("v").split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        return CheckFinding(_SUBJECT, "warn", f"the API server says that it is {version or 'of no version'}")
    minor, (oldest, newest) = (int(parts[0]), int(parts[1])), TRIED
    if oldest <= minor <= newest:
        return None
    how = "newer" if minor > newest else "older"
    tried = f"{_words(oldest)} to {_words(newest)}"
    message = f"{version} is {how} than the versions that Bayplan was tried with, {tried}"
    mend = "look for a newer Bayplan, and try it in mode audit" if how == "newer" else "try it in mode audit"
    return CheckFinding(_SUBJECT, "warn", message, mend)


async def _unknown_kinds(api: Api) -> list[CheckFinding]:
    """Returns findings for kinds that are served only in versions for which the webhooks are not called."""
    rows: dict[str, list[WorkloadKind]] = defaultdict(list)
    for row in KINDS.values():
        if row.group:
            rows[row.group].append(row)
    findings = []
    for group, kinds in rows.items():
        served = await _served(api, group)
        for row in kinds:
            versions = served.get(row.resource, [])
            if versions and not set(versions) & set(row.versions):
                message = (
                    f"{row.name} of {group} is served as {', '.join(versions)}; "
                    f"the webhooks are asked about {', '.join(row.versions)}"
                )
                findings.append(CheckFinding(_SUBJECT, "warn", message, "look for a newer Bayplan"))
    return findings


async def _served(api: Api, group: str) -> dict[str, list[str]]:
    """Returns the versions in which the resources of a group are served, by resource."""
    served: dict[str, list[str]] = defaultdict(list)
    for version in (await api.find(f"/apis/{group}") or {}).get("versions") or []:
        name = str(version["version"])
        for resource in (await api.find(f"/apis/{group}/{name}") or {}).get("resources") or []:
            served[resource["name"]].append(name)
    return served


def _words(minor: tuple[int, int]) -> str:
    return ".".join(map(str, minor))
