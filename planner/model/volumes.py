"""Persistent volumes and StorageClasses, which determine the nodes from which a volume can be used.

Source: core/v1 PersistentVolume and PersistentVolumeClaim, storage.k8s.io/v1 StorageClass. Sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.labels import Term
from planner.model.pod import VolumeClaim


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A PersistentVolume. `affinity`: its required node affinity as terms that are ORed, () for every node.

    `modes`: the access modes; `mode`: the volume mode. `claim`: NAMESPACE/NAME of the claim in its claimRef,
    "" for none. `available`: whether a claim can be bound to the volume.
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
    """A StorageClass. `provisions`: it has a provisioner, which creates volumes.

    `waits`: a volume is created or chosen only when the first pod is scheduled (`WaitForFirstConsumer`).
    `topologies`: the nodes for which volumes are created, as terms that are ORed, () for every node.
    """

    name: str
    waits: bool = False
    provisions: bool = True
    topologies: tuple[Term, ...] = ()
    default: bool = False


@dataclass(frozen=True, slots=True)
class Volumes:
    """The storage objects of a cluster: claims by NAMESPACE/NAME, volumes and classes by name."""

    claims: Mapping[str, VolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    classes: Mapping[str, StorageClass] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.claims or self.volumes or self.classes)

    def overlaid_with(self, overrides: Volumes) -> Volumes:
        """Returns the union of both; `overrides` wins if both have an object of the same name."""
        return Volumes(
            {**self.claims, **overrides.claims},
            {**self.volumes, **overrides.volumes},
            {**self.classes, **overrides.classes},
        )

    def class_of(self, claim: VolumeClaim) -> StorageClass | None:
        """Returns the class of a claim, the default class if it names none; None if that is not known."""
        if claim.storage_class is not None:
            return self.classes.get(claim.storage_class)
        return next(
            (storage_class for _, storage_class in sorted(self.classes.items()) if storage_class.default),
            None,
        )


NO_VOLUMES = Volumes()

VOLUME_KINDS = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass")
"""The kinds of storage objects, which may also be among the manifests of workloads."""
