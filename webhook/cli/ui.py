"""`bayplan ui`: the live page of a cluster, or of cluster files, for a browser on this machine."""

from __future__ import annotations

import argparse
import asyncio
import logging
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError, Where
from webhook.admission.environment import Environment
from webhook.admission.settings import Settings
from webhook.cli import inputs
from webhook.cli.mutate import MutationResult, decide_all
from webhook.cli.parsers import Subparsers, subcommand
from webhook.policy.engine.model import PolicySet
from webhook.report.collect import Subject, results
from webhook.report.model import MUTATION, Result
from webhook.ui.feed import Feed
from webhook.ui.file_source import Applied, Apply, FileSource, policy_counts
from webhook.ui.gate import KeyGate
from webhook.ui.http import Page, serve
from webhook.ui.picture import DecisionEntry, Picture

EPILOG = """examples:
  bayplan ui -c cluster.yaml                 a cluster in files: the racks, and the gangs that hold or wait
  bayplan ui -c cluster.yaml -f manifests/   and what these manifests would get, as one apply

Files are read again when they change. The page is for this machine alone (127.0.0.1), and the address that is
printed has its key: others with an account here cannot look. Nothing can be changed on it.

exit status: 0 stopped by Ctrl-C, 2 bad input or usage
"""

PORT = 8787


def add_parser(subparsers: Subparsers) -> None:
    """Add `ui`."""
    parser = subcommand(
        subparsers,
        "ui",
        description="Serve a live page of a cluster: racks, queue, gangs, decisions, policies, health.",
        epilog=EPILOG,
    )
    inputs.add_cluster(parser, required=True)
    inputs.add_manifests(parser, required=False)
    inputs.add_policies(parser)
    inputs.add_mode(parser)
    parser.add_argument("--port", type=int, default=PORT, help="0 picks a free one (default: %(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C. Raises `InputError` for a cluster that cannot be read, or a port that is taken."""
    logging.getLogger("bayplan").addHandler(logging.NullHandler())
    return asyncio.run(_run(args))


async def _run(args: argparse.Namespace) -> int:
    source = FileSource(args.cluster, args.filename, applying(args), Settings(mode=args.mode))
    return await _served(args, source.pictures())


async def _served(args: argparse.Namespace, pictures: AsyncIterator[Picture]) -> int:
    key = secrets.token_urlsafe(16)
    feed = Feed()
    following = asyncio.create_task(feed.follow(pictures))
    await asyncio.wait(
        [following, asyncio.create_task(feed.newer(0, float("inf")))], return_when="FIRST_COMPLETED"
    )
    if following.done():
        following.result()
    try:
        page = await serve(Page(feed, KeyGate(key)), "127.0.0.1", args.port)
    except OSError as error:
        raise InputError(f"cannot listen: {error.strerror or error}", Where(f"--port {args.port}")) from None
    sys.stdout.write(f"http://127.0.0.1:{page.port}/#key={key}\n")
    sys.stdout.flush()
    try:
        await following
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await page.stop()
    return 0


def applying(args: argparse.Namespace) -> Apply:
    """What applies the manifests of `-f` with the policies of `-p`, all as one apply."""
    policies = inputs.policies(args.policies)

    def apply(snapshot: Snapshot, around: Environment, now: float) -> Applied:
        if not args.filename:
            return Applied(revision=policies.revision)
        manifests = inputs.once(inputs.manifests(args.filename))
        outcomes = decide_all(
            policies, inputs.beside(snapshot, manifests), manifests, inputs.in_force(around, policies)
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
    found_results = results(
        Subject(outcome.name, str(outcome.document.value["apiVersion"]), "", 0, "", outcome.decision)
        for outcome in outcomes
    )
    counts = policy_counts(
        (result.policy, result.object.partition("/")[0], _outcome(result))
        for result in found_results
        if result.source != "plan"
    )
    entries = tuple(
        _entry(result, now) for result in found_results if result.result in ("fail", "warn", "error")
    )
    return Applied(tuple(plans), tuple(counts), entries, policies.revision)


def _outcome(result: Result) -> str:
    return "changed" if result.result == "pass" and result.rule == MUTATION else result.result


def _entry(result: Result, now: float) -> DecisionEntry:
    """What a policy, or the plan, said of an object."""
    policy = "" if result.source == "plan" else result.policy
    key = f"{result.object}/{result.title}: {result.message}"
    return DecisionEntry(key, now, result.object, result.rule or result.result, result.message, True, policy)
