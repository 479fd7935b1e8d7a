"""RuntimeClasses, and what the API server adds to the pods of a class when they are created.

Source: Kubernetes' admission plugin RuntimeClass (plugin/pkg/admission/runtimeclass), which runs before any
webhook, on pods only: pod templates lack what it adds. It refuses a pod if its class does not exist, if it
states another overhead than its class, or if its node selector has another value for a label of the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.model.labels import Toleration
from planner.model.pod import PodShape
from planner.model.resources import Resources


@dataclass(frozen=True, slots=True)
class RuntimeClass:
    """A RuntimeClass. Each of its pods gets `node_selector` and `tolerations`, and takes `overhead` (base
    units) on its node in addition to its containers.
    """

    name: str
    overhead: Resources = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()

    def admitted(self, shape: PodShape) -> PodShape:
        """Returns the shape of a pod of this class after the API server has admitted it, also if it is the
        shape of such a pod already. An overhead that the pod states is kept.
        """
        missing = {} if shape.overhead else self.overhead
        if not (missing or self.node_selector or self.tolerations):
            return shape
        return replace(
            shape.requesting_also(missing),
            overhead=shape.overhead or self.overhead,
            node_selector={**self.node_selector, **shape.node_selector},
            tolerations=tuple(dict.fromkeys((*shape.tolerations, *self.tolerations))),
        )


@dataclass(frozen=True, slots=True)
class RuntimeClasses:
    """The RuntimeClasses of a cluster by name. `complete`: no other class exists; False if none were read."""

    by_name: Mapping[str, RuntimeClass] = field(default_factory=dict)
    complete: bool = False

    def admitted(self, shape: PodShape) -> PodShape:
        """Returns the shape as `RuntimeClass.admitted` does; unchanged for a pod without a known class."""
        own = self.by_name.get(shape.runtime_class)
        return shape if own is None else own.admitted(shape)

    def selects(self, shape: PodShape, key: str, value: str) -> bool:
        """Reports whether the class of the pod has this label in its node selector."""
        own = self.by_name.get(shape.runtime_class)
        return own is not None and own.node_selector.get(key) == value


NO_RUNTIME_CLASSES = RuntimeClasses()
