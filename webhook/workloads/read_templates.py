"""Caches the templates of an object, so that only changed templates are read again.

Policies produce a sequence of objects, each of which is read. Values that no policy changed are shared
between them, and are recognised by identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.effort.deadline import poll
from webhook.workloads.gangs import PodSetRequest, pod_set_request
from webhook.workloads.layouts.layout import PodSetKey, PodSetTemplate


@dataclass(slots=True)
class ReadTemplates:
    """Caches the PodSets of one object. `requests`: by name, count and template path, the values from which a
    PodSet was read, and the PodSet. `reads`: how many PodSets were read because the cache did not have them.
    """

    requests: dict[PodSetKey, tuple[tuple[object, ...], tuple[object, ...], PodSetRequest]] = field(
        default_factory=dict
    )
    reads: int = 0

    def pod_set_request(
        self, template: PodSetTemplate, own: bool, implied: Mapping[str, str], name: str
    ) -> PodSetRequest:
        """Returns the PodSet that `gangs.pod_set_request` returns, from the cache if it was read already, and
        raises the same errors.
        """
        poll("reading")
        key = template.key
        metadata = template.metadata.map()
        parts = (
            metadata.get("labels"),
            metadata.get("annotations"),
            template.spec.value,
            template.volumes.value,
            *(annotated.value for annotated in template.annotated),
        )
        facts = (
            own,
            implied,
            name,
            template.max_count,
            template.first,
            template.count_field,
            template.added,
            template.template.root,
        )
        remembered = self.requests.get(key)
        if (
            remembered is None
            or remembered[1] != facts
            or len(remembered[0]) != len(parts)
            or any(a is not b for a, b in zip(remembered[0], parts, strict=True))
        ):
            self.reads += 1
            remembered = self.requests[key] = (
                parts,
                facts,
                pod_set_request(template, own, implied, name),
            )
        return remembered[2]
