"""A device as a driver offers it: its attributes and capacities, whatever node it is on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """A version attribute: a semantic version, which a string of the same text is not equal to."""

    text: str


Value = str | int | bool | Version


_SINGLE_GPU = ("uuid", "minor", "index", "pciBusID", "pcieBusID", "pcieRoot", "parentUUID", "parentIndex")


_SINGLE_NIC = ("mac", "ipv4", "ipv6", "guid", "nodeGUID", "serial", "serialNumber", "eui64", "wwn")


SINGLE = frozenset((*_SINGLE_GPU, *_SINGLE_NIC))
"""Attributes that distinguish a device from equal ones. Kinds of devices are compared without them, so nodes
with equal hardware are evaluated once. `slices.Offer.unique_attributes` records which devices have the same
value.
"""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that a driver offers: attributes by name, capacities in base units.

    Names are the driver's own ("productName"); others come with their domain.
    """

    driver: str
    attributes: tuple[tuple[str, Value], ...] = ()
    capacity: tuple[tuple[str, int], ...] = ()
    shareable: bool = False
    """Whether it may be given to several claims at a time (`allowMultipleAllocations`)."""
    complete: bool = False
    """Whether it has no other attributes, apart from those in `SINGLE`."""

    def attribute(self, name: str) -> Value | None:
        """An attribute, None where it has none of that name."""
        return dict(self.attributes).get(name)


def own_name(name: object, driver: str) -> str:
    """The name without the driver's own domain."""
    return str(name).removeprefix(driver + "/")
