"""`bayplan topology`: generates a Topology from node labels, or draws the topologies of a cluster."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from planner.cluster.snapshot import Snapshot
from planner.manifests.topologies.proposal import API_VERSIONS, propose, topology_manifest
from planner.model.topology import HOSTNAME
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, subcommand, verb
from webhook.cli.common.standing_words import add_cluster, look_at_snapshot
from webhook.report import terminal
from webhook.report.documents import as_yaml, indented
from webhook.report.fabric_map import FabricMap, fabric_map
from webhook.report.fabric_text import drawn
from webhook.report.printable import printable

EPILOG = """examples:
  bayplan topology propose -c cluster.yaml > topology.yaml
  bayplan topology show
  bayplan topology show -c cluster.yaml --nodes -o json

Without -c, the live cluster is used, including its reservations.

exit status: 0 done, 1 propose found no topology level above hosts, 2 bad input or usage
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `topology` with its verbs `propose` and `show`."""
    parser = subcommand(
        subparsers,
        "topology",
        description="Generate a Topology from node labels, or draw the topologies of a cluster.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    proposing = verb(actions, "propose", "generate a Topology from node labels", EPILOG)
    add_cluster(proposing)
    proposing.add_argument(
        "--kind",
        choices=tuple(API_VERSIONS),
        default="kai",
        help="the system whose Topology to generate (default: kai)",
    )
    proposing.set_defaults(run=run_propose)
    showing = verb(actions, "show", "draw racks with their nodes, free GPUs and gangs", EPILOG)
    add_cluster(showing)
    inputs.add_topology(showing)
    showing.add_argument("--nodes", action="store_true", help="name each node")
    showing.add_argument("-o", "--output", choices=("table", "json"), default="table")
    showing.set_defaults(run=run_show)


def run_propose(args: argparse.Namespace) -> int:
    """Prints a proposed Topology for each group of nodes whose topology labels have the same keys, with notes
    as comments. Returns 1 if there is none.

    Raises `InputError` for a cluster that cannot be read.
    """
    return look_at_snapshot(args, partial(_propose, args.kind))


def run_show(args: argparse.Namespace) -> int:
    """Prints the topologies. Raises `InputError` for an unknown name, or a cluster that cannot be read."""
    return look_at_snapshot(args, partial(_show, args))


def _propose(kind: str, snapshot: Snapshot) -> int:
    proposals = propose(snapshot.nodes.values())
    if not proposals:
        inputs.note("no node carries a label that tells more than its host; label zones and racks first")
        return 1
    parts = []
    for proposal in proposals:
        notes = [proposal.summary, *proposal.notes]
        manifest = topology_manifest(proposal.topology, kind)
        parts.append("".join(f"# {note}\n" for note in notes) + as_yaml(manifest))
    sys.stdout.write("---\n".join(parts))
    return 0


def _show(args: argparse.Namespace, snapshot: Snapshot) -> int:
    maps = [fabric_map(snapshot, topology) for topology in inputs.topologies(snapshot, args.topology)]
    if args.output == "json":
        document = {"topologies": [_json(fabric, args.nodes) for fabric in maps]}
        sys.stdout.write(indented(document))
        return 0
    out = terminal.console()
    for fabric in maps:
        for line in drawn(fabric, terminal.width(out), nodes=args.nodes):
            out.print(line)
        levels = f"levels: {' > '.join(fabric.topology.levels)}"
        out.print(terminal.folded(printable(levels), "  ", terminal.width(out)))
    return 0


def _json(fabric: FabricMap, nodes: bool) -> dict[str, object]:
    topology = fabric.topology
    return {
        "name": topology.name,
        "source": topology.source,
        "levels": list(topology.levels),
        "reservableLevel": topology.levels[topology.reservable_index],
        "root": _trimmed(fabric.count.to_json(), nodes),
    }


def _trimmed(domain: dict[str, object], nodes: bool) -> dict[str, object]:
    inside = domain["domains"]
    assert isinstance(inside, list), "a domain lists those inside it"
    kept = [_trimmed(domain, nodes) for domain in inside if nodes or domain["level"] != HOSTNAME]
    return {**domain, "domains": kept}
