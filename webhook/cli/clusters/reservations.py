"""`bayplan reservations`: lists, shows and releases reservations."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from rich.text import Text

from planner.ledger.ledger import Ledger
from planner.ledger.sqlite import SqliteLedger
from planner.manifests.reservation import reservation_manifest
from planner.model.errors import InputError, Where
from planner.model.reservation import Reservation
from webhook.cli.common.parsers import Subparsers, subcommand, verb
from webhook.kube.api.client import ApiError
from webhook.kube.api.kubeconfig import connect
from webhook.kube.gang_standing import held_nodes, holding
from webhook.kube.ledger.documents import RESERVATIONS
from webhook.kube.ledger.ledger import KubeLedger
from webhook.report import terminal
from webhook.report.documents import as_list, document

LEDGER_VARIABLE = "BAYPLAN_LEDGER"


EPILOG = """examples:
  bayplan reservations list
  bayplan reservations show default/Job/train -o json
  bayplan reservations release default/Job/train --ledger /data/bayplan.db
  bayplan reservations list --kubeconfig admin.conf --watch

With --kubeconfig, the ledger of the cluster is used. Otherwise the ledger is the file given by --ledger or by
$BAYPLAN_LEDGER, or else bayplan/bayplan.db in $XDG_STATE_HOME (~/.local/state).

exit status: 0 done, 1 no such reservation, or the ledger cannot be reached, 2 bad input or usage
"""


Clock = Callable[[], float]
"""Returns seconds since the epoch. The ledger of a cluster counts by the API server's time."""


_FORMATS = ("table", "wide", "json", "yaml", "name")


LOOK_SECONDS = 1.0
"""Seconds between two reads of the ledger with `--watch`."""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `reservations` with its verbs `list`, `show` and `release`."""
    parser = subcommand(
        subparsers,
        "reservations",
        description="List, show or release reservations.",
        epilog=EPILOG,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = _verb(verbs, "list", "list all reservations")
    listing.add_argument("-o", "--output", choices=_FORMATS, default="table")
    listing.add_argument(
        "-w", "--watch", action="store_true", help="print again after each change, until Ctrl-C"
    )
    listing.set_defaults(names=[])
    show = _verb(verbs, "show", "show the reservations of gangs")
    show.add_argument("-o", "--output", choices=_FORMATS, default="yaml")
    release = _verb(verbs, "release", "release reservations; the gang is planned again at its next request")
    for command in (show, release):
        command.add_argument(
            "names", metavar="NAME", nargs="+", help="a gang (NAMESPACE/KIND/NAME) or the id of a reservation"
        )


def run(args: argparse.Namespace) -> int:
    """Runs the verb on the ledger of a cluster or of a file. Returns 1 if a name has no reservation.

    Raises `InputError` if the file of `--ledger` does not exist or the cluster cannot be read, and
    `LedgerUnavailable`.
    """
    if args.kubeconfig is not None:
        return asyncio.run(_in_cluster(args))
    path: Path = args.ledger or default_ledger()
    if not path.exists():
        if args.ledger is not None:
            raise InputError("there is no ledger here", Where(str(path)))
        _note(f"nothing has been reserved here yet: there is no ledger at {path} (--kubeconfig: a cluster's)")
        return _print(args, (), time.time()) if args.verb == "list" else 1
    return asyncio.run(_run(args, path))


def default_ledger() -> Path:
    """Returns the default ledger file: $BAYPLAN_LEDGER, or else bayplan/bayplan.db in the XDG state folder.

    Creates the folder `bayplan` if needed. If this fails, opening the ledger reports the error later.
    """
    variable, state = os.environ.get(LEDGER_VARIABLE), os.environ.get("XDG_STATE_HOME")
    if variable:
        return Path(variable)
    folder = (Path(state) if state else Path.home() / ".local" / "state") / "bayplan"
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "bayplan.db"


def _verb(verbs: Subparsers, name: str, text: str) -> argparse.ArgumentParser:
    parser = verb(verbs, name, text, EPILOG)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--ledger", metavar="FILE", type=Path, help="the ledger file (default: see below)")
    source.add_argument(
        "--kubeconfig",
        metavar="FILE",
        nargs="?",
        const="",
        help="use the ledger of a cluster; without FILE, uses $KUBECONFIG or ~/.kube/config",
    )
    parser.set_defaults(run=run)
    return parser


async def _in_cluster(args: argparse.Namespace) -> int:
    api = await connect(args.kubeconfig or None)
    ledger = KubeLedger(api)
    try:
        await api.get(RESERVATIONS, limit="1")  # fails fast on a wrong address or wrong credentials
        await ledger.start()
        await ledger.reflector.synced.wait()
        return await _act(args, ledger, api.now)
    except ApiError as error:
        raise InputError(f"cannot be read: {error}", Where(args.kubeconfig or api.host)) from None
    finally:
        await ledger.close()
        await api.close()


async def _run(args: argparse.Namespace, path: Path) -> int:
    ledger = SqliteLedger(path)
    try:
        return await _act(args, ledger, time.time)
    finally:
        await ledger.close()


async def _act(args: argparse.Namespace, ledger: Ledger, clock: Clock) -> int:
    """Runs the verb on an open ledger, and returns the exit status."""
    live = (await ledger.book(clock())).reservations
    if args.verb == "list":
        status = _print(args, live, clock())
        while args.watch:
            live = await _changed(ledger, live, clock)
            if sys.stdout.isatty():
                terminal.console().clear()
            _print(args, live, clock())
            sys.stdout.flush()
        return status
    chosen, missing = _choose(live, args.names)
    for name in missing:
        _note(f"{name} holds nothing; `bayplan reservations list` shows who does")
    if args.verb == "show":
        return max(_print(args, chosen, clock()), 1 if missing else 0)
    for reservation in chosen:
        await ledger.release(reservation.id)
        sys.stdout.write(f"released {holding(reservation)}, held by {reservation.gang}\n")
    return 1 if missing else 0


async def _changed(ledger: Ledger, before: tuple[Reservation, ...], clock: Clock) -> tuple[Reservation, ...]:
    """Waits until the live reservations change, and returns them."""
    while (live := (await ledger.book(clock())).reservations) == before:  # noqa: ASYNC110 - a file sends no event
        await asyncio.sleep(LOOK_SECONDS)
    return live


def _choose(live: Sequence[Reservation], names: Sequence[str]) -> tuple[tuple[Reservation, ...], list[str]]:
    """Returns the reservations whose gang or id is in `names`, and the names without a reservation.

    The gang of one replica of a workload has the name NAMESPACE/KIND/NAME/REPLICA, and the name of the
    workload selects it too.
    """
    chosen: dict[str, Reservation] = {}
    missing = []
    for name in names:
        matching = [r for r in live if name in (r.id, r.gang, "/".join(r.gang.split("/")[:3]))]
        chosen.update({r.id: r for r in matching})
        if not matching:
            missing.append(name)
    return tuple(chosen.values()), missing


def _print(args: argparse.Namespace, reservations: Sequence[Reservation], now: float) -> int:
    if args.output in ("table", "wide"):
        _table(reservations, now, wide=args.output == "wide")
        return 0
    if args.output == "name":
        for reservation in sorted(reservations, key=lambda r: r.gang):
            terminal.console().print(reservation.gang)
        return 0
    manifests = [reservation_manifest(reservation) for reservation in reservations]
    alone = args.verb == "show" and len(manifests) == 1
    sys.stdout.write(document(args.output, manifests[0] if alone else as_list(manifests)))
    return 0


def _table(reservations: Sequence[Reservation], now: float, *, wide: bool) -> None:
    rows: list[tuple[str | Text, ...]] = [
        (
            reservation.gang,
            holding(reservation),
            str(reservation.seats),
            str(len(held_nodes(reservation))),
            Text(reservation.state, "green" if reservation.state == "claimed" else "yellow"),
            _left(reservation, now),
            reservation.id,
            *([", ".join(held_nodes(reservation))] if wide else []),
        )
        for reservation in sorted(reservations, key=lambda r: r.gang)
    ]
    columns = ("gang", "holds", "pods", "nodes", "state", "expires", "id", *(["on"] if wide else []))
    terminal.console().print(terminal.table(columns, rows) if rows else "no reservation")


def _left(reservation: Reservation, now: float) -> str:
    return "never" if reservation.expires is None else f"in {max(0, round(reservation.expires - now))} s"


def _note(text: str) -> None:
    sys.stderr.write(f"bayplan: {text}\n")
