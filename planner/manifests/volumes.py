"""Reads PersistentVolumeClaims, PersistentVolumes and StorageClasses, and the claims that a pod's spec
mounts.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.manifests.fields import mapping, maps, qualified_name, strings, text, texts
from planner.manifests.requirements import node_term_from, selector_from
from planner.model import quantity
from planner.model.errors import Where
from planner.model.labels import Requirement, Term
from planner.model.pod import VolumeClaim, VolumeUse
from planner.model.volumes import PersistentVolume, StorageClass

NO_PROVISIONER = "kubernetes.io/no-provisioner"

BOUND = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim whose binding is complete; kube-scheduler relies on this annotation alone."""

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: the node that kube-scheduler has chosen for its first pod, for which the volume is
made.
"""

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"

OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
"""The annotation that stated the class before the field existed; it still takes precedence."""


def claims_of(spec: Mapping[str, object], where: Where) -> tuple[VolumeUse, ...]:
    """Returns the claims that a pod's spec mounts, each once; `where`: the spec. Raises `InputError`."""
    uses: dict[VolumeUse, None] = {}
    for index, volume in enumerate(maps(spec.get("volumes"), where.below("volumes"))):
        place = where.below(f"volumes[{index}]")
        claim, claim_place = volume.get("persistentVolumeClaim"), place.below("persistentVolumeClaim")
        if claim is not None:
            name = text(mapping(claim, claim_place).get("claimName"), claim_place.below("claimName"))
            uses[VolumeUse(name)] = None
        ephemeral, template_place = volume.get("ephemeral"), place.below("ephemeral.volumeClaimTemplate")
        if ephemeral is not None:
            source = mapping(ephemeral, place.below("ephemeral"))
            template = mapping(source.get("volumeClaimTemplate"), template_place)
            name = text(volume.get("name"), place.below("name"))
            uses[VolumeUse(name, _volume_claim(template, template_place))] = None
    return tuple(uses)


def mounted_claims(spec: Mapping[str, object], where: Where) -> tuple[str, ...]:
    """Returns the names of the claims that a bound pod mounts, without those of its own ephemeral volumes."""
    return tuple(
        text(mapping(volume["persistentVolumeClaim"], where).get("claimName"), where)
        for volume in maps(spec.get("volumes"), where)
        if "persistentVolumeClaim" in volume
    )


def claim_templates(templates: object, stateful_set: str, first: int, where: Where) -> tuple[VolumeUse, ...]:
    """Returns the claims that each pod of a StatefulSet mounts by `volumeClaimTemplates`.

    `first`: the ordinal of the first pod. Raises `InputError`.
    """
    uses = []
    for index, template in enumerate(maps(templates, where)):
        place = where.below(f"[{index}]")
        metadata = mapping(template.get("metadata"), place.below("metadata"))
        name = text(metadata.get("name"), place.below("metadata.name"))
        uses.append(VolumeUse(name, _volume_claim(template, place), stateful_set, first))
    return tuple(uses)


def volume_claim_from(item: Mapping[str, object], where: Where) -> VolumeClaim:
    """Returns the record of a PersistentVolumeClaim. Raises `InputError`, which names the field."""
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    return _volume_claim(item, where, qualified_name(metadata, where))


def _volume_claim(item: Mapping[str, object], where: Where, name: str = "") -> VolumeClaim:
    """Returns the claim in a PersistentVolumeClaim or in a template for one."""
    metadata = mapping(item.get("metadata"), where.below("metadata"))
    annotations = texts(metadata.get("annotations"), where.below("metadata.annotations"))
    spec, place = mapping(item.get("spec"), where.below("spec")), where.below("spec")
    resources = mapping(spec.get("resources"), place.below("resources"))
    asked = quantity.amounts(resources.get("requests"), place.below("resources.requests"), up=True)
    stated = OLD_CLASS in annotations or spec.get("storageClassName") is not None
    volume = text(spec.get("volumeName"), place.below("volumeName"))
    return VolumeClaim(
        name=name,
        storage_class=_class_name(spec, annotations, place) if stated else None,
        volume=volume,
        bound=bool(volume) and BOUND in annotations,
        size=asked.get("storage", 0),
        modes=frozenset(strings(spec.get("accessModes"), place.below("accessModes"))),
        mode=text(spec.get("volumeMode"), place.below("volumeMode")) or "Filesystem",
        selector=selector_from(
            mapping(spec.get("selector"), place.below("selector")), place.below("selector")
        ),
        node=annotations.get(SELECTED_NODE, ""),
    )


def volume_from(item: Mapping[str, object], where: Where) -> PersistentVolume:
    """Returns the record of a PersistentVolume. Raises `InputError`, which names the field."""
    metadata = mapping(item.get("metadata"), where.below("metadata"))
    spec, place = mapping(item.get("spec"), where.below("spec")), where.below("spec")
    status = mapping(item.get("status"), where.below("status"))
    capacity = quantity.amounts(spec.get("capacity"), place.below("capacity"), up=False)
    claim_place = place.below("claimRef")
    reference = mapping(spec.get("claimRef"), claim_place)
    namespace, name = (text(reference.get(key), claim_place.below(key)) for key in ("namespace", "name"))
    leaving = metadata.get("deletionTimestamp") is not None
    return PersistentVolume(
        name=str(metadata["name"]),
        storage_class=_class_name(
            spec, texts(metadata.get("annotations"), where.below("metadata.annotations")), place
        ),
        affinity=_affinity(spec, place),
        labels=texts(metadata.get("labels"), where.below("metadata.labels")),
        size=capacity.get("storage", 0),
        modes=frozenset(strings(spec.get("accessModes"), place.below("accessModes"))),
        mode=text(spec.get("volumeMode"), place.below("volumeMode")) or "Filesystem",
        claim=f"{namespace}/{name}" if name else "",
        available=status.get("phase") == "Available" and not leaving,
    )


def _class_name(spec: Mapping[str, object], annotations: Mapping[str, str], place: Where) -> str:
    return annotations.get(OLD_CLASS) or text(spec.get("storageClassName"), place.below("storageClassName"))


def _affinity(spec: Mapping[str, object], where: Where) -> tuple[Term, ...]:
    place = where.below("nodeAffinity.required")
    affinity = mapping(spec.get("nodeAffinity"), where.below("nodeAffinity"))
    required = mapping(affinity.get("required"), place)
    terms = maps(required.get("nodeSelectorTerms"), place.below("nodeSelectorTerms"))
    return tuple(
        node_term_from(term, place.below(f"nodeSelectorTerms[{index}]")) for index, term in enumerate(terms)
    )


def storage_class_from(item: Mapping[str, object], where: Where) -> StorageClass:
    """Returns the record of a StorageClass. Raises `InputError`, which names the field."""
    metadata = mapping(item.get("metadata"), where.below("metadata"))
    annotations = texts(metadata.get("annotations"), where.below("metadata.annotations"))
    provisioner = text(item.get("provisioner"), where.below("provisioner"))
    topologies: list[Term] = []
    for index, term in enumerate(maps(item.get("allowedTopologies"), where.below("allowedTopologies"))):
        place = where.below(f"allowedTopologies[{index}].matchLabelExpressions")
        topologies.append(
            tuple(
                Requirement(text(entry.get("key"), place), "In", strings(entry.get("values"), place))
                for entry in maps(term.get("matchLabelExpressions"), place)
            )
        )
    return StorageClass(
        name=str(metadata["name"]),
        waits=item.get("volumeBindingMode") == "WaitForFirstConsumer",
        provisions=provisioner not in ("", NO_PROVISIONER),
        topologies=tuple(topologies),
        default=annotations.get(DEFAULT_CLASS) == "true",
    )
