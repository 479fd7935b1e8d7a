"""Host ports, expressed as pod anti-affinity over the host: a node takes no pod whose host port is in use.

Source: kube-scheduler's NodePorts plugin. Two pods conflict if they request the same protocol and port on the
same host address, or if one of them requests it on 0.0.0.0. A pod gets two labels for each port, with keys
that no user can write (a label key has at most one slash), and anti-affinity terms that select such labels:

    TCP 80 on 0.0.0.0    labels  hostPort/TCP/80  hostPort/TCP/80/0.0.0.0     terms  hostPort/TCP/80
    TCP 80 on 10.0.0.1   labels  hostPort/TCP/80  hostPort/TCP/80/10.0.0.1    terms  hostPort/TCP/80/0.0.0.0
                                                                                     hostPort/TCP/80/10.0.0.1

Thus the search, reservations and the check for conflicts between Bayplan's replicas handle host ports as they
handle anti-affinity. A bound pod gets the labels only: the terms of the pod that is to be placed already name
every conflict. So gangs without host ports need not look at the pods of DaemonSets, which often use host
ports on every node.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.model.labels import Requirement
from planner.model.pod import PodTerm
from planner.model.topology import HOSTNAME

EVERY_ADDRESS = "0.0.0.0"
"""All addresses of the host; an empty `hostIP` means the same."""

_PREFIX = "hostPort/"

HostPort = tuple[str, int, str]
"""Protocol, port and host address: `("TCP", 80, "0.0.0.0")`."""


def port_labels(ports: Iterable[HostPort]) -> dict[str, str]:
    """Returns the labels of a pod with these host ports."""
    keys = (
        key
        for protocol, port, address in ports
        for key in (_key(protocol, port), _key(protocol, port, address))
    )
    return dict.fromkeys(keys, "")


def port_terms(ports: Iterable[HostPort]) -> tuple[PodTerm, ...]:
    """Returns the anti-affinity terms that select every pod that conflicts with these host ports."""
    keys: dict[str, None] = {}
    for protocol, port, address in ports:
        if address == EVERY_ADDRESS:
            keys[_key(protocol, port)] = None
        else:
            keys[_key(protocol, port, EVERY_ADDRESS)] = keys[_key(protocol, port, address)] = None
    return tuple(PodTerm(HOSTNAME, (Requirement(key, "Exists"),), every=True) for key in keys)


def port_of(term: PodTerm) -> str:
    """Returns the host port of a term of `port_terms` as text ("host port 80/TCP"), "" for any other term."""
    key = term.selector[0].key if term.selector else ""
    if not key.startswith(_PREFIX):
        return ""
    protocol, port = key.split("/")[1:3]
    return f"host port {port}/{protocol}"


def _key(*parts: object) -> str:
    return _PREFIX + "/".join(map(str, parts))
