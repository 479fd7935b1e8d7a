"""What an admitted gang holds, and the domains that it could have held."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.podgroup import HoldMode
from planner.model.topology import ROOT, Domain


@dataclass(frozen=True, slots=True)
class DomainShare:
    """A domain that a gang may hold whole: the GPUs that it has, and how many of them the gang takes.

    `required`: every pod of the gang in this domain requires a level. `parted`: the domain is a node with
    several NVLink domains, and the gang fits in one of them. `other_gang`: another gang that holds or uses a
    part of the domain, "" for none.
    """

    domain: Domain
    taken: int
    gpus: int
    required: bool = False
    parted: bool = False
    other_gang: str = ""


@dataclass(frozen=True, slots=True)
class Holding:
    """What a gang holds. `domains` are held whole; `shares`: under `auto`, the domains that were considered.

    `level`: the level that the gang requires, ROOT for none.
    """

    mode: HoldMode
    domains: tuple[Domain, ...] = ()
    shares: tuple[DomainShare, ...] = ()
    level: int = ROOT
