"""A device as a driver offers it: its attributes and capacities, without the node that it is on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """A version attribute (a semantic version). It is not equal to a string with the same text, because
    constraints compare types too.
    """

    text: str


Value = str | int | bool | Version
"""The value of a device attribute."""


_SINGLE_GPU = ("uuid", "minor", "index", "pciBusID", "pcieBusID", "pcieRoot", "parentUUID", "parentIndex")


_SINGLE_NIC = ("mac", "ipv4", "ipv6", "guid", "nodeGUID", "serial", "serialNumber", "eui64", "wwn")


SINGLE = frozenset((*_SINGLE_GPU, *_SINGLE_NIC))
"""Attributes that distinguish a device from otherwise equal ones, for example a serial number. A `Device`
does not have them, so devices of equal hardware compare equal and nodes with equal hardware are evaluated
once. `slices.Offer.unique_attributes` has their values, for constraints.
"""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that a driver offers: attributes by name, capacities in base units.

    Attributes of the driver's own domain are listed without the domain ("productName"), all others with
    theirs.
    """

    driver: str
    attributes: tuple[tuple[str, Value], ...] = ()
    capacity: tuple[tuple[str, int], ...] = ()
    shareable: bool = False
    """Whether several claims can use the device at a time (`allowMultipleAllocations`)."""
    complete: bool = False
    """Whether all attributes of the device are known, apart from those in `SINGLE`. True for a device from a
    ResourceSlice: a CEL selector that reads a missing attribute fails, so the device does not match. False
    for a device derived from node labels: the result of such a selector is unknown.
    """

    def attribute(self, name: str) -> Value | None:
        """Returns the attribute's value; None if the device does not have it."""
        return dict(self.attributes).get(name)


def own_name(name: object, driver: str) -> str:
    """Returns the qualified name of an attribute or capacity without its domain if the domain is the
    driver's; other names are returned as they are.
    """
    return str(name).removeprefix(driver + "/")
