"""What an admitted gang will hold, and the domains that were considered for it."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.podgroup import HoldMode
from planner.model.topology import ROOT, Domain


@dataclass(frozen=True, slots=True)
class DomainShare:
    """A domain that a gang may hold whole: its number of GPUs, and how many of them the gang takes (`taken`).

    `required`: some level is required for every pod of the gang in this domain (for the gang, for the pod's
    PodSet or slice, or for several PodSets together). `parted`: the domain is a node with several NVLink
    domains, and the gang takes no more GPUs than one of them has. `other_gang`: another gang that holds or
    uses a part of the domain, "" for none.
    """

    domain: Domain
    taken: int
    gpus: int
    required: bool = False
    parted: bool = False
    other_gang: str = ""


@dataclass(frozen=True, slots=True)
class Holding:
    """What a gang holds. `domains` are held whole.

    `shares`: the domains that were considered, if the gang's reserve mode is `auto`. `level`: the index of
    the level that the gang requires, ROOT for none.
    """

    mode: HoldMode
    domains: tuple[Domain, ...] = ()
    shares: tuple[DomainShare, ...] = ()
    level: int = ROOT
