"""`bayplan ui`: serves the live page of a cluster, or of cluster files."""

from __future__ import annotations

import argparse
import asyncio
import logging
import secrets
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from certs.reload import ReloadingContext
from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError, Where
from planner.model.names import namespace_of
from webhook.admission.configuration.settings import Settings
from webhook.admission.environment import Environment
from webhook.cli.cluster_files.file_source import Applied, Apply, FileSource
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, port, subcommand
from webhook.cli.common.standing_words import add_installation, quiet
from webhook.cli.decisions.mutate import MutationResult, decide_all
from webhook.kube.api.kubeconfig import ACCOUNT
from webhook.kube.standing import standing_of
from webhook.policy.model.policy import PolicySet
from webhook.report.collect import Subject, results
from webhook.report.model import MUTATION, Result
from webhook.ui.decision_log import counts_by_policy
from webhook.ui.feed import Feed
from webhook.ui.gate import Gate, KeyGate
from webhook.ui.http import Page, Serving, serve
from webhook.ui.live_source import LiveSource
from webhook.ui.picture import DecisionEntry, Picture
from webhook.ui.reviews import ReviewGate

EPILOG = """examples:
  bayplan ui                                 the cluster of $KUBECONFIG, or else ~/.kube/config
  bayplan ui --kubeconfig admin.conf
  bayplan ui -c cluster.yaml                 a cluster in files: racks and gangs
  bayplan ui -c cluster.yaml -f manifests/   and where these manifests would be placed

Nothing can be changed on the page. It is for this machine alone (127.0.0.1), and the address that is printed
has its key: others with an account here cannot look. It shows what the kubeconfig may list. Files are read
again when they change. With --in-cluster it serves everybody who has a token of the cluster what they may
list (docs/ui.md): the component `ui` of the manifests runs that.

exit status: 0 stopped by Ctrl-C, 2 bad input or usage
"""

PORT = 8787

LOCAL = "127.0.0.1"

READY_SECONDS = float("inf")
"""Seconds to wait for the first picture of the cluster: no limit, because reading a cluster has its own
timeout.
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `ui`."""
    parser = subcommand(
        subparsers,
        "ui",
        description="Serve a live web page of a cluster: racks, queue, gangs, decisions, policies, health.",
        epilog=EPILOG,
    )
    add_installation(parser)
    inputs.add_cluster(parser, required=False)
    inputs.add_manifests(parser, required=False)
    inputs.add_policies(parser)
    inputs.add_mode(parser)
    parser.add_argument(
        "--port", type=port, default=PORT, help="port to listen on; 0 picks a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--in-cluster",
        action="store_true",
        help="read the cluster that this pod runs in, and serve its users",
    )
    parser.add_argument(
        "--host", default=LOCAL, help="with --in-cluster: address to listen on (default: %(default)s)"
    )
    parser.add_argument("--tls-cert", metavar="FILE", type=Path, help="with --in-cluster: serve HTTPS")
    parser.add_argument("--tls-key", metavar="FILE", type=Path, help="private key of the certificate")
    parser.add_argument(
        "--account",
        metavar="DIR",
        type=Path,
        default=ACCOUNT,
        help="with --in-cluster: folder with token and ca.crt (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serves the page until Ctrl-C. Raises `InputError` for a cluster that cannot be read, options that
    exclude each other, or an address that cannot be used.
    """
    _check(args)
    if args.in_cluster:
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    else:
        quiet()  # the page shows problems under Health
    return asyncio.run(_run(args))


def _check(args: argparse.Namespace) -> None:
    """Raises `InputError` for options that exclude each other.

    A page has one source of pictures. And only with `--in-cluster` does it distinguish its users, so only
    then may it listen on an address that others can reach.
    """
    if args.cluster and (args.kubeconfig or args.in_cluster):
        raise InputError("-c is a cluster in files: leave out --kubeconfig and --in-cluster")
    if args.kubeconfig and args.in_cluster:
        raise InputError("--in-cluster reads the cluster that this runs in: leave out --kubeconfig")
    if args.filename and not args.cluster:
        raise InputError("-f is applied to a cluster in files: give it with -c")
    if not args.in_cluster and (args.host != LOCAL or args.tls_cert or args.tls_key):
        raise InputError(
            "--host, --tls-cert and --tls-key are for --in-cluster: a local page has one key for all"
        )
    if bool(args.tls_cert) != bool(args.tls_key):
        raise InputError("--tls-cert and --tls-key go together")


async def _run(args: argparse.Namespace) -> int:
    if args.cluster:
        source = FileSource(args.cluster, args.filename, applying(args), Settings(mode=args.mode))
        return await _local(args, source.pictures())
    account = args.account if args.in_cluster else None
    async with standing_of(args.kubeconfig, args.installation, account) as lookout:
        pictures = LiveSource(lookout).pictures()
        if not args.in_cluster:
            return await _local(args, pictures)
        return await _served(args, pictures, ReviewGate(lookout.runtime.api), "")


async def _local(args: argparse.Namespace, pictures: AsyncGenerator[Picture]) -> int:
    """Serves the page on this machine only. A random key in its URL keeps other users of the machine out."""
    key = secrets.token_urlsafe(16)
    return await _served(args, pictures, KeyGate(key), f"#key={key}")


async def _served(
    args: argparse.Namespace, pictures: AsyncGenerator[Picture], gate: Gate, fragment: str
) -> int:
    """Serves the page until SIGTERM or SIGINT, or until the source of pictures fails.

    `fragment`: appended to the URL that is printed.
    """
    tls = _tls(args)
    feed, stop = Feed(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with aclosing(pictures):
        following = asyncio.create_task(feed.follow(pictures))
        stopped = asyncio.create_task(stop.wait())
        renewing = [asyncio.create_task(tls.watch())] if tls else []
        first = asyncio.create_task(feed.newer(0, READY_SECONDS))
        await asyncio.wait([following, stopped, first], return_when=asyncio.FIRST_COMPLETED)
        try:
            if first.done():
                page = await _opened(args, Page(feed, gate), tls, fragment)
                await asyncio.wait([following, stopped], return_when=asyncio.FIRST_COMPLETED)
                await page.stop()
            if following.done():
                following.result()
        finally:
            tasks = [following, stopped, first, *renewing]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return 0


async def _opened(
    args: argparse.Namespace, page: Page, tls: ReloadingContext | None, fragment: str
) -> Serving:
    """Starts to listen, and prints the URL. Raises `InputError` if the address cannot be used."""
    try:
        serving = await serve(page, args.host, args.port, tls.context if tls else None)
    except OSError as error:
        place = Where(f"{args.host}:{args.port}")
        raise InputError(f"cannot listen: {error.strerror or error}", place) from None
    scheme = "https" if tls else "http"
    sys.stdout.write(f"{scheme}://{args.host}:{serving.port}/{fragment}\n")
    sys.stdout.flush()
    return serving


def _tls(args: argparse.Namespace) -> ReloadingContext | None:
    if args.tls_cert is None:
        return None
    try:
        return ReloadingContext(args.tls_cert, args.tls_key, report=logging.getLogger("bayplan").info)
    except OSError as error:
        place = Where(f"{args.tls_cert}, {args.tls_key}")
        raise InputError(f"no usable pair: {error.strerror or error}", place) from None


def applying(args: argparse.Namespace) -> Apply:
    """Returns a function that decides on the manifests of `-f` with the policies of `-p`, as if they were
    applied to the cluster together.
    """
    policies = inputs.policies(args.policies)

    def apply(snapshot: Snapshot, environment: Environment, now: float) -> Applied:
        if not args.filename:
            return Applied(revision=policies.revision)
        manifests = inputs.without_duplicates(inputs.manifests(args.filename))
        outcomes = decide_all(
            policies,
            inputs.with_claims_of(snapshot, manifests),
            manifests,
            inputs.in_force(environment, policies),
        )
        return _applied(policies, outcomes, now)

    return apply


def _applied(policies: PolicySet, outcomes: list[MutationResult], now: float) -> Applied:
    plans = [
        placed
        for outcome in outcomes
        if outcome.decision.plan is not None and outcome.decision.response.allowed
        for placed in outcome.decision.plan.placed
    ]
    policy_results = results(
        Subject(outcome.name, str(outcome.document.value["apiVersion"]), "", 0, "", outcome.decision)
        for outcome in outcomes
    )
    counts = counts_by_policy(
        (result.policy, namespace_of(result.object), _outcome(result))
        for result in policy_results
        if result.source != "plan"
    )
    entries = tuple(
        _entry(result, now) for result in policy_results if result.result in ("fail", "warn", "error")
    )
    return Applied(tuple(plans), tuple(counts), entries, policies.revision)


def _outcome(result: Result) -> str:
    return "changed" if result.result == "pass" and result.rule == MUTATION else result.result


def _entry(result: Result, now: float) -> DecisionEntry:
    """Returns the result of a policy or of the plan as an entry in the page's list of decisions."""
    policy = "" if result.source == "plan" else result.policy
    key = f"{result.object}/{result.title}: {result.message}"
    return DecisionEntry(key, now, result.object, result.rule or result.result, result.message, True, policy)
