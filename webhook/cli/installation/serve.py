"""`bayplan serve`: runs the admission webhook."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TypedDict

from planner.cluster import switch_graph
from planner.ledger.sqlite import SqliteLedger
from planner.model.errors import InputError, Where
from webhook.admission.configuration.settings import Settings
from webhook.admission.environment import NAMESPACE
from webhook.cli.cluster_files.watched import ClusterFiles
from webhook.cli.clusters.reservations import default_ledger
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, duration, is_loopback, pause, port, subcommand
from webhook.cli.installation.cluster_reports import record, report_writer
from webhook.cli.installation.deciding import DecidingProcesses, deciding_processes, worker_count
from webhook.cli.installation.journaling import keep_journal
from webhook.cli.installation.reloads import PoliciesObserver, Reloads, log_warnings
from webhook.cli.installation.serving_certificates import Tls, add_secret, from_files, in_secret
from webhook.kube.api.kubeconfig import ACCOUNT
from webhook.kube.ledger.proposals import COMMIT_SECONDS
from webhook.kube.moving.defragmenter import Defragmenter
from webhook.kube.runtime import ClusterRuntime
from webhook.placement.hold import HOLD_SECONDS
from webhook.policy.loading.files import PolicyStore
from webhook.policy.model.policy import PolicySet
from webhook.server.cluster_source import ClusterSource, NoCluster
from webhook.server.garbage_collection import freeze_survivors
from webhook.server.http import DEADLINE, Webhook
from webhook.server.listening import start
from webhook.server.service import TRY_SECONDS, Service

SWITCH_SECONDS = 0.001
"""Seconds for which a deciding thread keeps the interpreter lock (`sys.setswitchinterval`). At each step
of a call, the event loop may wait this long for every such thread; with Python's default of 5 ms, a step
takes up to 30 ms.
"""


LEAST_JOURNAL = 64
"""The minimum size of a journal in MiB: each of its files must have room for two admissions of the largest
objects.
"""


log = logging.getLogger("bayplan")


EPILOG = """examples:
  bayplan certs init --dir certs.d --service bayplan --namespace bayplan-system
  bayplan serve --tls-cert certs.d/tls.crt --tls-key certs.d/tls.key -p policies/ -c cluster/
  bayplan serve --in-cluster --host 0.0.0.0 --certificate-secret bayplan-tls   several replicas
  bayplan serve --insecure --port 8080 -c cluster.yaml     plain HTTP on loopback, for tests

--journal records requests without environment values and Secrets.

/mutate and /validate accept AdmissionReview v1. /healthz, /readyz and /metrics serve probes and Prometheus.
Policies, cluster files and certificates are reloaded when they change. If a new set of policies is invalid,
the last valid one stays in use.
"""


def _ignore(policies: PolicySet) -> None:
    """Does nothing: without a live cluster, there is no watch that must follow reloaded policies."""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `serve`."""
    parser = subcommand(
        subparsers,
        "serve",
        description="Serve the admission webhook.",
        epilog=EPILOG,
    )
    inputs.add_cluster(parser, required=False)
    inputs.add_policies(parser)
    _add_listening(parser)
    _add_book(parser)
    inputs.add_mode(parser)
    _add_journal(parser)
    _add_process(parser)
    parser.set_defaults(run=run)


def _add_listening(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the listen address, the certificate and the accepted clients."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=port, default=8443, help="port to listen on; 0 picks a free one (default: %(default)s)"
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="serving certificate, PEM")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key, PEM")
    add_secret(parser)
    parser.add_argument(
        "--client-ca", type=Path, metavar="FILE", help="require client certificates signed by this CA"
    )
    parser.add_argument(
        "--client-names",
        nargs="+",
        default=[],
        metavar="NAME",
        help="with --client-ca: common or DNS names that may call (default: all certificates of the CA)",
    )
    parser.add_argument(
        "--probe-port",
        type=port,
        metavar="PORT",
        help="serve /healthz, /readyz and /metrics on this port in plain HTTP, instead of on --port",
    )
    parser.add_argument(
        "--insecure", action="store_true", help="serve plain HTTP, for tests; the API server requires HTTPS"
    )


def _add_book(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the ledger, in a file or in a cluster, and for how reserved nodes are
    protected.
    """
    parser.add_argument(
        "--ledger", metavar="FILE", default=None, help="file of the reservation ledger (SQLite)"
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--kubeconfig", metavar="FILE", help="watch this cluster, and store the ledger in it")
    place.add_argument("--in-cluster", action="store_true", help="the same, with the pod's service account")
    parser.add_argument(
        "--account",
        type=Path,
        default=ACCOUNT,
        metavar="DIR",
        help="folder with token and ca.crt for --in-cluster (default: where Kubernetes mounts them)",
    )
    parser.add_argument(
        "--namespace", default=NAMESPACE, help="namespace of the leader election Lease (default: %(default)s)"
    )
    parser.add_argument(
        "--fence",
        choices=("affinity", "taint"),
        default="affinity",
        help="how other pods are kept out of reserved domains: node affinity, or taints in addition "
        "(default: %(default)s)",
    )


def _add_journal(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the journal."""
    parser.add_argument(
        "--journal",
        type=Path,
        metavar="DIR",
        help="record requests and answers in this folder, for `bayplan replay`",
    )
    parser.add_argument(
        "--journal-size",
        type=_mebibytes,
        default=512,
        metavar="MIB",
        help="total size of the journal; the oldest files are removed (default: %(default)s)",
    )


def _add_process(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the process: controller, deadline, workers and shutdown."""
    parser.add_argument(
        "--no-controller",
        action="store_true",
        help="only answer requests; leave the controller to other replicas",
    )
    parser.add_argument(
        "--deadline", type=duration, default=DEADLINE, metavar="SECONDS", help="time limit of a call"
    )
    parser.add_argument(
        "--workers",
        type=worker_count,
        default=1,
        metavar="N",
        help="processes that decide in parallel, or `cores` for one per CPU, at most 4 (default: 1, "
        "the serving process itself)",
    )
    parser.add_argument(
        "--drain",
        type=pause,
        default=0.0,
        metavar="SECONDS",
        help="continue to serve for this long after SIGTERM",
    )


def _mebibytes(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < LEAST_JOURNAL:
        raise argparse.ArgumentTypeError(f"{text!r} is no size of a journal: {LEAST_JOURNAL} MiB at least")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serves the webhook until SIGTERM or SIGINT. Raises `InputError`, `PolicyError` or
    `LedgerUnavailable` if it cannot start.
    """
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
    sys.setswitchinterval(SWITCH_SECONDS)
    return asyncio.run(_serve(args))


class ServiceTimes(TypedDict):
    """The arguments of `Service` that depend on the deadline, in seconds."""

    try_seconds: float
    hold_seconds: float


async def _serve(args: argparse.Namespace) -> int:
    policies = inputs.policy_store(args.policies)
    files = from_files(args)
    settings = Settings(mode=args.mode)
    if not (args.kubeconfig or args.in_cluster):
        cluster: ClusterSource = ClusterFiles(args.cluster, settings) if args.cluster else NoCluster(settings)
        book = args.ledger or default_ledger()
        with deciding_processes(args.workers) as processes:
            parts = {**processes.parts, **times_within(args.deadline)}
            service = Service(policies, SqliteLedger(book), cluster, **parts)
            webhook = processes.observed_by(_webhook(args, service, book))
            return await _until_stopped(args, webhook, files)
    if args.cluster or args.ledger:
        raise InputError("-c and --ledger are for serving without a cluster; leave them out here")
    defragmenter = Defragmenter()
    side = await ClusterRuntime.connect(
        args.kubeconfig,
        in_cluster=args.in_cluster,
        account=args.account,
        namespace=args.namespace,
        taints=args.fence == "taint",
        settings=settings,
        commit_seconds=_scaled(args.deadline, COMMIT_SECONDS),
    )
    try:
        if not args.no_controller:
            side.take_part(args.namespace, defragmenter.lead)
        if args.certificate_secret:
            side.certificates = in_secret(args, side)
        with deciding_processes(args.workers) as processes:
            return await _serve_cluster(args, policies, side, defragmenter, processes, files)
    finally:
        await side.close()


async def _serve_cluster(
    args: argparse.Namespace,
    policies: PolicyStore,
    side: ClusterRuntime,
    defragmenter: Defragmenter,
    processes: DecidingProcesses,
    files: Tls | None,
) -> int:
    side.follow(policies.current)
    parts = {**processes.parts, **times_within(args.deadline)}
    service = Service(policies, side.claims, side, side.api.now, **parts)
    side.queue.in_force = service.settings
    webhook = processes.observed_by(_webhook(args, service))
    if side.recoveries is not None:
        for collector in (side.recoveries, *defragmenter.metrics.all):
            webhook.metrics.registry.register(collector)
    side.reports = report_writer(side, lambda: policies.current.revision)
    webhook.observer = partial(record, side.reports, side)
    webhook.metrics.registry.register(side.reports.dropped)
    await side.reports.start()
    return await _until_stopped(args, webhook, side.certificates or files, side.follow)


def times_within(deadline: float) -> ServiceTimes:
    """Returns the times of `Service` for a deadline in seconds, in proportion to the default deadline.

    A hold is never shorter than by default, because the time until the API server has stored an object
    does not depend on the deadline.
    """
    return {
        "try_seconds": _scaled(deadline, TRY_SECONDS),
        "hold_seconds": max(HOLD_SECONDS, _scaled(deadline, HOLD_SECONDS)),
    }


def _scaled(deadline: float, seconds: float) -> float:
    """Returns `seconds`, a time for the default deadline, scaled in proportion to this deadline."""
    return deadline * seconds / DEADLINE


def _webhook(args: argparse.Namespace, service: Service, book: str | Path = "") -> Webhook:
    """Returns the webhook with the options of the command. `book`: the ledger file, "" if the ledger is in
    a cluster.
    """
    written = {"reservations": Path(book).absolute().parent} if book else {}
    if args.certificate_secret:
        written["certificates"] = Path(tempfile.gettempdir())
    elif args.tls_cert:
        written["certificates"] = args.tls_cert.absolute().parent
    return Webhook(service, args.deadline, callers=frozenset(args.client_names), folders=written)


async def _until_stopped(
    args: argparse.Namespace, webhook: Webhook, tls: Tls | None, observer: PoliciesObserver = _ignore
) -> int:
    policies = webhook.service.policies
    journal = keep_journal(args.journal, args.journal_size, webhook)
    if tls is not None:
        webhook.certificate_end = tls.ends
    switch_graph.load()
    freeze_survivors()
    try:
        running = await start(webhook, args.host, args.port, tls.context if tls else None, args.probe_port)
    except OSError as error:
        message = f"cannot listen: {error.strerror or error}"
        raise InputError(message, Where(f"{args.host}:{args.port}")) from None
    scheme = "https" if tls else "http"
    log.info("serving on %s://%s:%d, policies %s", scheme, args.host, running.port, policies.current.revision)
    if tls is None and not is_loopback(args.host):
        log.warning(
            "plain HTTP on %s, which other machines reach: what is asked and answered can be read and "
            "changed on the way, and anybody may ask; leave --host away, or serve TLS", args.host,
        )  # fmt: skip
    log_warnings(policies.current)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    watchers = [asyncio.create_task(Reloads(webhook, observer).run())]
    if tls:
        watchers.append(asyncio.create_task(tls.watch()))
    await stop.wait()
    await running.drain(args.drain)
    for watcher in watchers:
        watcher.cancel()
    await asyncio.gather(*watchers, return_exceptions=True)
    await running.stop()
    if journal is not None:
        await asyncio.to_thread(journal.close)
    log.info("stopped; nothing was left in flight")
    return 0
