"""The data of an object that only the HTML page shows: its diff, and the racks of its gangs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.model.reservation import Reservation
from webhook.report.fabric_map import FabricMap, MapRow, NodeState

ObjectKey = tuple[str, str, str]
"""The key of an object in a report: NAMESPACE/KIND/NAME, apiVersion, and its file ("" for none)."""


@dataclass(frozen=True, slots=True)
class ObjectView:
    """The diff of an object, and the racks of its gangs.

    `diff`: the lines of the unified diff, without its header. `rows`: the racks that the object's gangs
    use or hold, in which the nodes of these gangs have their gang and state.
    """

    diff: tuple[str, ...] = ()
    rows: tuple[MapRow, ...] = ()


def racks_of(maps: Sequence[FabricMap], reservations: Sequence[Reservation]) -> tuple[MapRow, ...]:
    """Returns the rows of the maps that contain nodes of the reservations. These nodes show the
    reservation's gang and its state, even if the maps show another gang there.
    """
    own: dict[str, dict[str, tuple[str, NodeState]]] = {}
    for reservation in reservations:
        nodes = own.setdefault(reservation.topology, {})
        for name in reservation.touched:
            nodes.setdefault(name, (reservation.gang, "held"))
        for assignment in reservation.assignments:
            nodes[assignment.node] = (reservation.gang, "placed")
    return tuple(
        drawn
        for fabric in maps
        if fabric.topology.name in own
        for row in fabric.rows
        if (drawn := _with(row, own[fabric.topology.name])) is not row
    )


def _with(row: MapRow, own: dict[str, tuple[str, NodeState]]) -> MapRow:
    if not any(cell.node in own for cell in row.cells):
        return row
    cells = tuple(
        replace(cell, gang=own[cell.node][0], state=own[cell.node][1]) if cell.node in own else cell
        for cell in row.cells
    )
    return replace(row, cells=cells)
