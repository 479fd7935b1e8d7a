"""The proxy for the API server that the environment names, by the rules of kubectl."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def environment_proxy(host: str) -> str | None:
    """Returns the proxy for the API server that the environment names; None if it names none.

    As in kubectl, $NO_PROXY may contain networks (10.0.0.0/8), and this machine's addresses need no proxy.
    """
    url = urlsplit(host)
    names = {url.hostname or "", url.netloc.rpartition("@")[2]}  # an IPv6 address without and with brackets
    proxies = getproxies()
    if not url.hostname or any(map(proxy_bypass, names)) or _is_near(url.hostname, proxies.get("no", "")):
        return None
    return proxies.get(url.scheme)


def _is_near(host: str, excluded: str) -> bool:
    """Returns whether a host is this machine, or an address in one of the networks in `excluded`."""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or any(address in network for network in _networks(excluded))


def _networks(excluded: str) -> Iterator[IPv4Network | IPv6Network]:
    for entry in excluded.split(","):
        with suppress(ValueError):  # a name, or an address with a port
            yield ip_network(entry.strip(), strict=False)
