"""Host ports, expressed as pod anti-affinity over the host: a node takes no pod whose host port is in use.

Source: kube-scheduler's NodePorts plugin. Two pods conflict if they ask for the same protocol and port on the
same host address, or either of them on 0.0.0.0. Each port is written as labels that no user can write (a
label key has one slash at the most), and a pod has terms over them:

    TCP 80 on 0.0.0.0    labels  hostPort/TCP/80  hostPort/TCP/80/0.0.0.0     terms  hostPort/TCP/80
    TCP 80 on 10.0.0.1   labels  hostPort/TCP/80  hostPort/TCP/80/10.0.0.1    terms  hostPort/TCP/80/0.0.0.0
                                                                                     hostPort/TCP/80/10.0.0.1

The search, reservations and conflicts between replicas then handle host ports as they handle anti-affinity.
A bound pod has the labels only: the terms of the pod that requests a port already name every conflict. So
gangs without host ports need not look at pods of DaemonSets, which often use host ports on every node.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.model.labels import Requirement
from planner.model.pod import PodTerm
from planner.model.topology import HOSTNAME

EVERY_ADDRESS = "0.0.0.0"
"""Every address of the host, and what an empty `hostIP` means."""

_PREFIX = "hostPort/"

HostPort = tuple[str, int, str]
"""Protocol, port and host address: `("TCP", 80, "0.0.0.0")`."""


def port_labels(ports: Iterable[HostPort]) -> dict[str, str]:
    """The labels of a pod with these host ports."""
    keys = (
        key
        for protocol, port, address in ports
        for key in (_key(protocol, port), _key(protocol, port, address))
    )
    return dict.fromkeys(keys, "")


def port_terms(ports: Iterable[HostPort]) -> tuple[PodTerm, ...]:
    """The terms that keep a pod with these host ports from pods that conflict with it."""
    keys: dict[str, None] = {}
    for protocol, port, address in ports:
        if address == EVERY_ADDRESS:
            keys[_key(protocol, port)] = None
        else:
            keys[_key(protocol, port, EVERY_ADDRESS)] = keys[_key(protocol, port, address)] = None
    return tuple(PodTerm(HOSTNAME, (Requirement(key, "Exists"),), every=True) for key in keys)


def port_of(term: PodTerm) -> str:
    """The host port that a term of `port_terms` is about, in words, or "" for any other term."""
    key = term.selector[0].key if term.selector else ""
    if not key.startswith(_PREFIX):
        return ""
    protocol, port = key.split("/")[1:3]
    return f"host port {port}/{protocol}"


def _key(*parts: object) -> str:
    return _PREFIX + "/".join(map(str, parts))
