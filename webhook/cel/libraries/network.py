"""ip(), isIP(), cidr(), isCIDR(), and the methods of addresses and networks."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, Final

from webhook.cel.compiler.functions import Overload, overload, scanning
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import register_type

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_BROADCAST: Final = ipaddress.IPv4Address("255.255.255.255")


@dataclass(frozen=True, slots=True)
class IP:
    """An IP address. An IPv4-mapped IPv6 address is stored as the IPv4 address."""

    address: Address


@dataclass(frozen=True, slots=True)
class CIDR:
    """An address with a prefix length; the bits after the prefix are kept until `masked()`."""

    address: Address
    prefix: int

    def holds(self, address: Address) -> bool:
        """Returns whether the network contains an address."""
        if address.version != self.address.version:
            return False
        shift = address.max_prefixlen - self.prefix
        return int(address) >> shift == int(self.address) >> shift


register_type(IP, "net.IP")
register_type(CIDR, "net.CIDR")


def _address(text: str, name: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise FunctionError(f"{name}() needs a valid address") from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise FunctionError(f"{name}() takes no zone")
        # The specification's cases read `::ffff:c0a8:1` as 192.168.0.1, and refuse the notation with dots.
        # Kubernetes refuses both.
        if address.ipv4_mapped is not None and "." in text:
            raise FunctionError(f"{name}() takes no IPv4 address inside an IPv6 one")
        return address.ipv4_mapped or address
    return address


def _ip(text: str) -> IP:
    return IP(_address(text, "ip"))


def _cidr(text: str) -> CIDR:
    host, slash, prefix = text.partition("/")
    address = _address(host, "cidr")
    valid = (
        slash and prefix.isascii() and prefix.isdigit() and len(prefix) <= 3 and str(int(prefix)) == prefix
    )
    if not valid or int(prefix) > address.max_prefixlen:
        raise FunctionError("cidr() needs a prefix length within the address's bits")
    return CIDR(address, int(prefix))


def _is(parse: Any) -> Any:
    def test(text: str) -> bool:
        try:
            parse(text)
        except FunctionError:
            return False
        return True

    return test


def _global_unicast(ip: IP) -> bool:
    a = ip.address
    return not (a.is_unspecified or a.is_loopback or a.is_multicast or a.is_link_local or a == _BROADCAST)


def _link_local_multicast(ip: IP) -> bool:
    number = int(ip.address)
    if ip.address.version == 4:
        return number >> 8 == 0xE00000
    return number >> 120 == 0xFF and number >> 112 & 0xF == 2


def _masked(cidr: CIDR) -> CIDR:
    network = ipaddress.ip_network((cidr.address, cidr.prefix), strict=False)
    return CIDR(network.network_address, cidr.prefix)


def _contains(outer: CIDR, inner: CIDR) -> bool:
    return outer.prefix <= inner.prefix and outer.holds(inner.address)


OVERLOADS: Final[tuple[Overload, ...]] = (
    scanning("ip(string) -> net.IP", _ip),
    scanning("isIP(string) -> bool", _is(_ip)),
    scanning("ip.isCanonical(string) -> bool", lambda text: str(_ip(text).address) == text),
    overload("string(net.IP) -> string", lambda ip: str(ip.address)),
    overload("<net.IP>.family() -> int", lambda ip: ip.address.version),
    overload("<net.IP>.isUnspecified() -> bool", lambda ip: ip.address.is_unspecified),
    overload("<net.IP>.isLoopback() -> bool", lambda ip: ip.address.is_loopback),
    overload("<net.IP>.isLinkLocalMulticast() -> bool", _link_local_multicast),
    overload("<net.IP>.isLinkLocalUnicast() -> bool", lambda ip: ip.address.is_link_local),
    overload("<net.IP>.isGlobalUnicast() -> bool", _global_unicast),
    scanning("cidr(string) -> net.CIDR", _cidr),
    scanning("isCIDR(string) -> bool", _is(_cidr)),
    overload("string(net.CIDR) -> string", lambda cidr: f"{cidr.address}/{cidr.prefix}"),
    overload("<net.CIDR>.containsIP(net.IP) -> bool", lambda cidr, ip: cidr.holds(ip.address)),
    overload("<net.CIDR>.containsIP(string) -> bool", lambda cidr, text: cidr.holds(_ip(text).address)),
    overload("<net.CIDR>.containsCIDR(net.CIDR) -> bool", _contains),
    overload("<net.CIDR>.containsCIDR(string) -> bool", lambda cidr, text: _contains(cidr, _cidr(text))),
    overload("<net.CIDR>.ip() -> net.IP", lambda cidr: IP(cidr.address)),
    overload("<net.CIDR>.masked() -> net.CIDR", _masked),
    overload("<net.CIDR>.prefixLength() -> int", lambda cidr: cidr.prefix),
)
