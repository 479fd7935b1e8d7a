"""Formats the result of `bayplan verify`: compares a gang's pods with its plan, and the measured bandwidth
with the model's. Pure.

Estimates and measurements are always in separate lines and fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from planner.bandwidth.comparison import GangLayout
from planner.bandwidth.verification import Comparison, Verification
from planner.model.topology import short
from planner.model.words import counted
from webhook.report import terminal
from webhook.report.printable import printable

_GB = 10**9


def lines(verified: Verification, compared: Comparison | None, at_least: float) -> Iterator[Text | Table]:
    """Yields a table of the pods by node, the model's estimate, and the measurement if there is one.

    `at_least`: the share of the estimate (0 to 1) that the measurement must reach.
    """
    held = verified.held
    place = printable("/".join(filter(None, held.domain))) or "several domains"
    yield Text(f"{printable(held.gang)}  {short(held.level) + ' ' if held.level else ''}{place}", "bold")
    rows = [(printable(seat.node), str(seat.planned), str(seat.bound)) for seat in verified.seats]
    yield terminal.table(("node", "planned", "there"), rows)
    yield Text(_place_words(verified))
    if verified.layout is None:
        yield Text("no estimate: the model is of two whole GPUs or more")
        return
    layout = verified.layout
    domains = len(layout.gpus)
    yield Text(
        f"model: {layout.estimate.bus_bandwidth:.1f} GB/s bus bandwidth for 1 GB over "
        f"{counted(sum(layout.gpus), 'GPU')} in {counted(domains, 'NVLink domain')} "
        f"({layout.estimate.model}; {layout.rates.words})"
    )
    if compared is not None:
        yield from _measured(compared, at_least)


def to_json(verified: Verification, compared: Comparison | None, at_least: float) -> dict[str, Any]:
    """Returns the comparison as JSON, with separate fields `model` and `measured`. Bandwidths are in GB/s."""
    held = verified.held
    return {
        "name": held.gang,
        "level": held.level or None,
        "domain": list(held.domain),
        "asPlanned": verified.as_planned,
        "nodes": [{"node": s.node, "planned": s.planned, "bound": s.bound} for s in verified.seats],
        "model": _model(verified.layout, compared),
        "measured": {
            "bytes": compared.measured.size,
            "busBandwidthGBps": compared.measured.bus_bandwidth,
            "wrongValues": compared.measured.wrong,
        }
        if compared is not None
        else None,
        "comparison": {
            "share": round(compared.share, 3),
            "atLeast": at_least,
            "suffices": compared.share >= at_least and not compared.measured.wrong,
        }
        if compared is not None
        else None,
    }


def _place_words(verified: Verification) -> str:
    if verified.as_planned:
        return "every pod is where it was planned"
    crowded = [seat.node for seat in verified.seats if seat.bound > seat.planned]
    words = []
    if crowded:
        words.append(f"more pods than planned on {', '.join(map(printable, crowded))}")
    if verified.waiting > 0:
        words.append(f"{counted(verified.waiting, 'pod is', 'pods are')} on no node")
    return "; ".join(words) or "pods are missing on some nodes"


def _measured(compared: Comparison, at_least: float) -> Iterator[Text]:
    measured, expected = compared.measured, compared.model.bus_bandwidth
    size = f"{measured.size / _GB:.3g} GB"
    yield Text(f"measured: {measured.bus_bandwidth:.1f} GB/s bus bandwidth for {size}")
    share = f"{100 * compared.share:.0f} % of the {expected:.1f} GB/s that the model expects for {size}"
    if measured.wrong:
        yield Text(f"the fabric corrupts data: {measured.wrong} values were wrong", "red")
    elif compared.share >= at_least:
        yield Text(f"the fabric gives what it should: {share}", "green")
    else:
        yield Text(
            f"the fabric gives less than it should: {share}, and {100 * at_least:.0f} % are asked for", "red"
        )


def _model(layout: GangLayout | None, compared: Comparison | None) -> dict[str, Any] | None:
    if layout is None:
        return None
    estimate = compared.model if compared is not None else layout.estimate
    return {
        "name": estimate.model,
        "bytes": compared.measured.size if compared is not None else _GB,
        "busBandwidthGBps": round(estimate.bus_bandwidth, 1),
        "gpusByNVLinkDomain": list(layout.gpus),
        "links": layout.rates.words,
    }
