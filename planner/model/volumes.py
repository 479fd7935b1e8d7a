"""Persistent volumes and StorageClasses: on which nodes a volume can be.

Source: core/v1 PersistentVolume and PersistentVolumeClaim, storage.k8s.io/v1 StorageClass. Sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from planner.model.labels import Term
from planner.model.pod import VolumeClaim


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A volume. `affinity`: its required node affinity, terms that are ORed, () for every node.

    `claim`: NAMESPACE/NAME of the claim that it is for, "" for any. `available`: a claim may be bound to it.
    """

    name: str
    storage_class: str = ""
    affinity: tuple[Term, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    modes: frozenset[str] = frozenset()
    mode: str = "Filesystem"
    claim: str = ""
    available: bool = False


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A class of volumes, which it makes where it `provisions`.

    `waits`: they are made, or chosen, where the first pod goes (`WaitForFirstConsumer`). `topologies`: the
    nodes that it makes them for, terms that are ORed, () for every node.
    """

    name: str
    waits: bool = False
    provisions: bool = True
    topologies: tuple[Term, ...] = ()
    default: bool = False


@dataclass(frozen=True, slots=True)
class Volumes:
    """What the cluster tells of volumes: claims by NAMESPACE/NAME, the others by name."""

    claims: Mapping[str, VolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    classes: Mapping[str, StorageClass] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.claims or self.volumes or self.classes)

    @classmethod
    def of(cls, objects: Iterable[VolumeClaim | PersistentVolume | StorageClass]) -> Volumes:
        """From records in any order; of two with one name the later."""
        claims, volumes, classes = {}, {}, {}
        for record in objects:
            if isinstance(record, VolumeClaim):
                claims[record.name] = record
            elif isinstance(record, PersistentVolume):
                volumes[record.name] = record
            else:
                classes[record.name] = record
        return cls(claims, volumes, classes)

    def beside(self, overrides: Volumes) -> Volumes:
        """The union of both; `overrides` wins where both have an entry."""
        return Volumes(
            {**self.claims, **overrides.claims},
            {**self.volumes, **overrides.volumes},
            {**self.classes, **overrides.classes},
        )

    def class_of(self, claim: VolumeClaim) -> StorageClass | None:
        """The class of a claim, the default one where it names none; None where it is not known."""
        if claim.storage_class is not None:
            return self.classes.get(claim.storage_class)
        return next(
            (storage_class for _, storage_class in sorted(self.classes.items()) if storage_class.default),
            None,
        )


NO_VOLUMES = Volumes()

VOLUME_KINDS = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass")
"""Objects that say where volumes are, and that may come with the workloads."""
