"""`bayplan topology`: write a Topology from the labels that nodes carry, or draw the one that is there."""

from __future__ import annotations

import argparse
import sys

from rich.text import Text
from rich.tree import Tree

from planner.cluster.census import Count, census
from planner.manifests.topologies.proposal import API_VERSIONS, propose, topology_manifest
from planner.model.topology import HOSTNAME, Topology
from planner.model.words import listed
from webhook.cli import inputs
from webhook.cli.parsers import Subparsers, subcommand
from webhook.report.documents import as_yaml, indented
from webhook.report.terminal import console

EPILOG = """examples:
  bayplan topology propose -c cluster.yaml > topology.yaml
  bayplan topology show -c cluster.yaml
  bayplan topology show -c cluster.yaml --nodes -o json

exit status: 0 done, 1 propose found no level above the hosts, 2 bad input or usage
"""


_MOST_HOLDERS = 3
"""Gangs named on a domain's line; of the others it says how many."""


def add_parser(subparsers: Subparsers) -> None:
    """Add `topology` with `propose` and `show`."""
    parser = subcommand(
        subparsers,
        "topology",
        description="Propose a Topology from the labels that nodes carry, or draw the topologies there are.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    proposing = actions.add_parser("propose", help="write a Topology from the labels found")
    inputs.add_cluster(proposing, required=True)
    proposing.add_argument(
        "--kind", choices=tuple(API_VERSIONS), default="kai", help="whose Topology to write (default: kai)"
    )
    proposing.set_defaults(run=run_propose)
    showing = actions.add_parser("show", help="draw the tree with nodes, GPUs and holders")
    inputs.add_cluster(showing, required=True)
    inputs.add_topology(showing)
    showing.add_argument("--nodes", action="store_true", help="draw the nodes too")
    showing.add_argument("-o", "--output", choices=("table", "json"), default="table")
    showing.set_defaults(run=run_show)


def run_propose(args: argparse.Namespace) -> int:
    """Print the proposed objects, with what is odd about them as comments."""
    snapshot = inputs.cluster(args.cluster)
    assert snapshot is not None, "argparse demands -c"
    proposals = propose(snapshot.nodes.values())
    if not proposals:
        inputs.note("no node carries a label that tells more than its host; label zones and racks first")
        return 1
    parts = []
    for proposal in proposals:
        notes = [f"{proposal.nodes} nodes, labels of {proposal.source}", *proposal.notes]
        manifest = topology_manifest(proposal.topology, args.kind)
        parts.append("".join(f"# {note}\n" for note in notes) + as_yaml(manifest))
    sys.stdout.write("---\n".join(parts))
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Print the trees. Raises `InputError` for an unknown name."""
    snapshot = inputs.cluster(args.cluster)
    assert snapshot is not None, "argparse demands -c"
    chosen = inputs.topologies(snapshot, args.topology)
    counts = {topology.name: census(snapshot, topology.name) for topology in chosen}
    if args.output == "json":
        document = {"topologies": [_json(topology, counts[topology.name], args.nodes) for topology in chosen]}
        sys.stdout.write(indented(document))
        return 0
    out = console()
    for topology in chosen:
        out.print(_drawn(topology, counts[topology.name], args.nodes))
    return 0


def _json(topology: Topology, count: Count, nodes: bool) -> dict[str, object]:
    return {
        "name": topology.name,
        "source": topology.source,
        "levels": list(topology.levels),
        "reservableLevel": topology.levels[topology.reservable_index],
        "root": _trimmed(count.to_json(), nodes),
    }


def _trimmed(domain: dict[str, object], nodes: bool) -> dict[str, object]:
    inside = domain["domains"]
    assert isinstance(inside, list), "a domain lists those inside it"
    kept = [_trimmed(domain, nodes) for domain in inside if nodes or domain["level"] != HOSTNAME]
    return {**domain, "domains": kept}


def _drawn(topology: Topology, count: Count, nodes: bool) -> Tree:
    levels = " > ".join(topology.levels)
    drawn = Tree(Text(f"{topology.title}  {_numbers(count)}\n{levels}"))
    _branch(drawn, count, nodes)
    return drawn


def _branch(drawn: Tree, count: Count, nodes: bool) -> None:
    for domain in count.domains:
        if domain.level == HOSTNAME and not nodes:
            continue
        if not domain.path[-1]:  # nodes without this level's label stand directly under the level above
            _branch(drawn, domain, nodes)
            continue
        label = Text(f"{domain.path[-1]}  {_numbers(domain)}", "" if domain.free else "dim")
        _branch(drawn.add(label), domain, nodes)


def _numbers(count: Count) -> str:
    host = count.level == HOSTNAME
    words = [] if host else [f"{count.nodes} node{'' if count.nodes == 1 else 's'}"]
    words.append(f"{count.free} of {count.gpus} GPUs free")
    if count.unusable:
        words.append("cordoned or not ready" if host else f"{count.unusable} cordoned or not ready")
    if count.holders:
        words.append(f"held by {listed(count.holders, _MOST_HOLDERS)}")
    elif count.pristine and count.gpus and not host:
        words.append("pristine")
    return ", ".join(words)
