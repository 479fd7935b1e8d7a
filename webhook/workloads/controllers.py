"""The controller of an object, as its ownerReferences name it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from webhook.workloads.fields import Field
from webhook.workloads.kinds import WorkloadKind, row_of


# Like `Field`, not frozen: each reading of an object creates one. Never modified.
@dataclass(slots=True)
class ObjectController:
    """A controller. `kind`: "" for no controller. `name`: NAMESPACE/KIND/NAME. `row`: the row of its kind,
    None for an unknown kind.
    """

    kind: str = ""
    name: str = ""
    row: WorkloadKind | None = None

    @property
    def has_gangs(self) -> bool:
        """Whether the pods of the object belong to gangs of the controller (those of a JobSet's Job)."""
        return self.row is not None and (self.row.holds or self.row.each_pod)

    @property
    def has_templates(self) -> bool:
        """Whether the controller created the object from a template; one of an unknown kind may have."""
        return bool(self.name) and (self.row is None or self.row.has_templates)

    @property
    def suspends(self) -> bool:
        """Whether the controller's kind has a field that suspends it."""
        return self.row is not None and bool(self.row.suspend)


def controller_in(metadata: Field, namespace: str) -> ObjectController:
    """Returns the controller that an object's metadata names."""
    for reference in metadata.get("ownerReferences").items():
        if reference.get("controller").flag():
            kind, name = reference.get("kind").name(), reference.get("name").name()
            row = row_of(reference.get("apiVersion").text(), kind)
            return ObjectController(kind, f"{namespace}/{kind}/{name}", row)
    return ObjectController()
