"""What a gang that is admitted holds, and the domains that were considered for it."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.podgroup import HoldMode
from planner.model.topology import ROOT, Domain


@dataclass(frozen=True, slots=True)
class DomainShare:
    """A domain that a gang may hold whole: the GPUs that it has, and how many of them the gang takes.

    `required`: every pod in it requires a level. `parted`: it is a node of several NVLink domains, and the
    gang has room in one. `other_gang`: one that holds or uses a part of it, "" for none.
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
