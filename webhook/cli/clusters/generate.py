"""`bayplan generate`: prints objects for KAI, Kueue and NVLink domains, made from the nodes of a cluster."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable

from planner.cluster.snapshot import Snapshot
from planner.manifests.topologies.proposal import Proposal, propose
from planner.manifests.topologies.scheduler_objects import (
    KUEUE_VERSIONS,
    Proposed,
    compute_domain,
    kai_objects,
    kueue_objects,
)
from planner.model.errors import InputError, Where
from planner.model.node import Node
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, subcommand, verb
from webhook.cli.common.standing_words import add_cluster, look_at_snapshot
from webhook.report.documents import as_yaml

EPILOG = """examples:
  bayplan generate kai -c cluster.yaml --queue research=64 --queue serving > kai.yaml
  bayplan generate kueue -c cluster.yaml --queue main -n research -n serving > kueue.yaml
  bayplan generate compute-domain pretrain -n research > compute-domain.yaml

kai and kueue read the cluster of the kubeconfig, or files (-c).
The manifests are printed, not applied. Comments in them point out what you should check.

exit status: 0 done, 1 no topology level above hosts was found, 2 bad input or usage
"""


NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""Matches the name of a Kubernetes object (an RFC 1123 subdomain)."""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `generate` with its verbs `kai`, `kueue` and `compute-domain`."""
    parser = subcommand(
        subparsers,
        "generate",
        description="Generate objects for KAI, Kueue and NVLink domains from the nodes of a cluster.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="kai|kueue|compute-domain")
    kai = verb(actions, "kai", "generate a Topology for each group of nodes, and Queues", EPILOG)
    add_cluster(kai)
    kai.add_argument(
        "--queue",
        metavar="NAME[=GPUS]",
        action="append",
        type=_queue,
        help="create a Queue, with this GPU quota (default: default-queue, without a limit)",
    )
    kai.set_defaults(run=run_kai)
    kueue = verb(
        actions, "kueue", "generate a Topology and ResourceFlavor for each group of nodes, and queues", EPILOG
    )
    add_cluster(kueue)
    kueue.add_argument("--queue", metavar="NAME", type=_name, default="main", help="default: %(default)s")
    kueue.add_argument(
        "-n",
        "--namespace",
        action="append",
        type=_name,
        help="create a LocalQueue in this namespace (default: default)",
    )
    kueue.add_argument(
        "--api-version",
        choices=KUEUE_VERSIONS,
        default=KUEUE_VERSIONS[0],
        help="API version of Kueue's objects; v1beta1 for Kueue before 0.15 (default: %(default)s)",
    )
    kueue.set_defaults(run=run_kueue)
    domain = verb(
        actions, "compute-domain", "generate a ComputeDomain for a gang in one NVLink domain", EPILOG
    )
    domain.add_argument("name", metavar="NAME", type=_name)
    domain.add_argument("-n", "--namespace", type=_name, default="default", help="default: %(default)s")
    inputs.add_cluster(domain, required=False)
    domain.set_defaults(run=run_domain)


def run_kai(args: argparse.Namespace) -> int:
    """Prints Topologies and Queues of KAI. Raises `InputError` for a cluster that cannot be read, or a
    queue that is given twice.
    """
    queues = dict(args.queue or [("default-queue", None)])
    if len(queues) < len(args.queue or queues):
        raise InputError("a name occurs twice", Where("--queue"))

    def objects(nodes: list[Node], proposals: tuple[Proposal, ...]) -> Iterable[Proposed]:
        return kai_objects(proposals, queues, nodes)

    return _proposing(args, objects)


def run_kueue(args: argparse.Namespace) -> int:
    """Prints Topologies, ResourceFlavors, a ClusterQueue and LocalQueues of Kueue. Raises `InputError` for
    a cluster that cannot be read.
    """
    namespaces = list(dict.fromkeys(args.namespace or ["default"]))

    def objects(nodes: list[Node], proposals: tuple[Proposal, ...]) -> Iterable[Proposed]:
        return kueue_objects(proposals, args.queue, namespaces, nodes, args.api_version)

    return _proposing(args, objects)


def run_domain(args: argparse.Namespace) -> int:
    """Prints a ComputeDomain. Raises `InputError` for cluster files that cannot be read."""
    snapshot = inputs.cluster(args.cluster) if args.cluster else None
    nodes = None if snapshot is None else list(snapshot.nodes.values())
    return _print([compute_domain(args.name, args.namespace, nodes)])


def _proposing(
    args: argparse.Namespace, objects: Callable[[list[Node], tuple[Proposal, ...]], Iterable[Proposed]]
) -> int:
    """Prints the objects for the nodes of the files of `-c`, or else of the live cluster. Returns 1 if the
    nodes have no topology level above hosts.
    """

    def show(snapshot: Snapshot) -> int:
        nodes = list(snapshot.nodes.values())
        if proposals := propose(nodes):
            return _print(objects(nodes, proposals))
        inputs.note("no node carries a label that tells more than its host; label zones and racks first")
        return 1

    return look_at_snapshot(args, show)


def _print(objects: Iterable[Proposed]) -> int:
    parts = ("".join(f"# {note}\n" for note in row.notes) + as_yaml(row.manifest) for row in objects)
    sys.stdout.write("---\n".join(parts))
    return 0


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a Kubernetes object")
    return text


def _queue(text: str) -> tuple[str, float | None]:
    name, equals, gpus = text.partition("=")
    if equals and not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", gpus):
        raise argparse.ArgumentTypeError(f"{gpus!r} is no number of GPUs")
    amount = float(gpus or 0)
    return _name(name), None if not equals else int(amount) if amount.is_integer() else amount
