"""Makes decisions from the changes of gangs between two pictures, for clusters in files, which have no
Events. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.model.words import counted
from webhook.kube.gang_standing import GangStanding, holding
from webhook.ui.picture import DecisionEntry


def news_of(before: Iterable[GangStanding], after: Iterable[GangStanding], now: float) -> list[DecisionEntry]:
    """Returns a decision for each gang that got, changed or lost its place, began to wait, or waits for
    another reason. `now`: the time of the decisions, seconds since the epoch.
    """
    last = {gang.name: _standing(gang) for gang in before}
    news = []
    for gang in after:
        kind, message = _standing(gang)
        if last.pop(gang.name, None) != (kind, message):
            waits = gang.state in ("waiting", "stuck")
            news.append(DecisionEntry(f"{gang.name}@{now}", now, gang.name, kind, message, warning=waits))
    gone = "holds nothing any more, and does not wait"
    news += [DecisionEntry(f"{name}@{now}", now, name, "Released", gone) for name in last]
    return news


def _standing(gang: GangStanding) -> tuple[str, str]:
    """Returns the reason that an Event of the controller has for the gang's state, and a message."""
    if gang.state == "waiting":
        return "Queued", f"waits for: {gang.waits_for(wide=True)}"
    if gang.state == "stuck":  # it lost its place, and there is no other
        return "Replanned", gang.waits_for(wide=True)
    place = f" in {holding(gang.reservation)}" if gang.reservation is not None else ""
    words = counted(gang.pods, "pod has its place", "pods have their place")
    if gang.state == "admitted":
        return "Admitted", f"{words}{place}"
    return "Reserved", f"{words}{place}"
