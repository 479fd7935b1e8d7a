"""Reads the host ports that a pod's spec requests, by kube-scheduler's rules.

The ports of containers and sidecars count; an init container has ended when the others start. With
`hostNetwork` every container port is a host port, because the API server sets that default on pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.manifests.fields import integer, maps, text
from planner.model.errors import Where
from planner.model.host_ports import EVERY_ADDRESS, HostPort


def host_ports(spec: Mapping[str, object], where: Where) -> tuple[HostPort, ...]:
    """Returns the host ports of a pod with this spec, each once. Raises `InputError`."""
    on_host = spec.get("hostNetwork") is True
    return tuple(dict.fromkeys(_ports(spec, where, on_host=on_host)))


def _ports(spec: Mapping[str, object], where: Where, *, on_host: bool) -> Iterator[HostPort]:
    for field in ("containers", "initContainers"):
        for index, container in enumerate(maps(spec.get(field), where.below(field))):
            if field == "initContainers" and container.get("restartPolicy") != "Always":
                continue
            place = where.below(f"{field}[{index}].ports")
            for number, entry in enumerate(maps(container.get("ports"), place)):
                entry_place = place.below(f"[{number}]")
                port = integer(entry.get("hostPort"), entry_place.below("hostPort"))
                port = port or (
                    integer(entry.get("containerPort"), entry_place.below("containerPort")) if on_host else 0
                )
                if port > 0:
                    protocol = text(entry.get("protocol"), entry_place.below("protocol")) or "TCP"
                    yield (
                        protocol,
                        port,
                        text(entry.get("hostIP"), entry_place.below("hostIP")) or EVERY_ADDRESS,
                    )
