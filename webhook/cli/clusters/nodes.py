"""`bayplan nodes`: checks node labels and kubelet settings that plans depend on, and plans MIG partitions."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.manifests.fields import yaml_text
from planner.manifests.node_checks.finding import NodeFinding
from planner.manifests.node_checks.gpu_matrix import read_matrix
from planner.manifests.node_checks.kubelet import Drift, advised, drift
from planner.manifests.node_checks.labels import check_labels
from planner.manifests.node_checks.mig_plan import plan_mig
from planner.model.errors import InputError, Where
from planner.model.resources import GPU, MIG_CONFIG_LABEL
from planner.request.created_pods import as_admitted
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, subcommand, verb
from webhook.cli.common.standing_words import add_kubeconfig, in_files, quiet
from webhook.files.reader import objects
from webhook.kube.cluster_objects import DESCRIBES_NODES, ClusterObjects, cluster_objects
from webhook.report import terminal
from webhook.report.documents import as_yaml, document

EPILOG = """examples:
  bayplan nodes check
  bayplan nodes check -c cluster/ --print labels | sh
  bayplan nodes check --kubelet-config gpu-1=configz.json --print kubelet
  bayplan nodes check --topology-matrix gpu-1=topo.txt
  bayplan nodes mig -c cluster/ -f inference.yaml

A kubelet's configuration is its configuration file, or the output of:
  kubectl get --raw /api/v1/nodes/NODE/proxy/configz
NODE= is optional if the cluster has one node. Put a drop-in into the folder given by the kubelet's
--config-dir. Drain the node first, and before the kubelet starts again, remove cpu_manager_state and
memory_manager_state from its root directory.

exit status: 0 nothing to fix, 1 something to fix, 2 bad input or usage
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `nodes` with its verbs `check` and `mig`."""
    parser = subcommand(
        subparsers,
        "nodes",
        description="Check node labels and kubelet settings, and plan MIG partitions.",
        epilog=EPILOG,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    check = verb(verbs, "check", "list what is missing or contradictory, and how to fix it", EPILOG)
    _add_cluster(check)
    for option, metavar, help_text in (
        ("--kubelet-config", "[NODE=]FILE", "the kubelet's configuration on a node"),
        ("--topology-matrix", "[NODE=]FILE", "the output of `nvidia-smi topo -m` on a node"),
    ):
        check.add_argument(option, metavar=metavar, nargs="+", action="extend", default=[], help=help_text)
    check.add_argument(
        "--print",
        dest="printed",
        choices=("labels", "kubelet"),
        help="print only the label commands, or only the kubelet drop-ins",
    )
    check.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table")
    check.set_defaults(run=run)
    cut = verb(
        verbs,
        "mig",
        "plan how to partition the GPUs of idle nodes for the MIG slices that pods wait for",
        EPILOG,
    )
    _add_cluster(cut)
    inputs.add_manifests(cut, required=False)
    cut.set_defaults(run=run_mig)


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    inputs.add_cluster(parser, required=False)
    add_kubeconfig(parser)


def run_mig(args: argparse.Namespace) -> int:
    """Prints a configuration for NVIDIA's MIG manager, and as comments the commands that label the nodes
    with it.

    Returns 1 if some pods get no slices. Raises `InputError` for a cluster or manifest that cannot be read.
    """
    seen = _seen(args)
    gangs = inputs.gangs(args.filename) if args.filename else list(seen.waiting.values())
    plan = plan_mig(seen.snapshot, [as_admitted(seen.snapshot, gang) for gang in gangs])
    for words in (*plan.unplaced, *plan.warnings):
        inputs.note(words)
    for name, config in plan.by_node.items():
        label = f"{MIG_CONFIG_LABEL}={config}"
        sys.stdout.write(f"# {shlex.join(['kubectl', 'label', 'node', name, '--overwrite', label])}\n")
    if plan.configs:
        sys.stdout.write(as_yaml({"version": "v1", "mig-configs": dict(plan.configs)}))
    elif not plan.unplaced:
        inputs.note("no pod waits for MIG slices")
    return int(bool(plan.unplaced))


def _seen(args: argparse.Namespace) -> ClusterObjects:
    """Returns the cluster of `-c`, or else the live one. Raises `InputError` if it cannot be read."""
    if in_files(args):
        return ClusterObjects(inputs.cluster(args.cluster), [item.value for item in objects(args.cluster)])
    quiet()
    seen = asyncio.run(cluster_objects(args.kubeconfig, DESCRIBES_NODES))
    inputs.note_unread(seen.unread)
    return seen


def run(args: argparse.Namespace) -> int:
    """Prints what to fix; returns 1 if there is something to fix.

    Raises `InputError` for a cluster or file that cannot be read, or an unknown node.
    """
    seen = _seen(args)
    findings = [*check_labels(seen.snapshot, seen.objects), *_of_matrices(args.topology_matrix, seen)]
    configs = _configs(args.kubelet_config, seen)
    advice = {name: _advice(seen, name, configs.get(name, {})) for name in _aligned(seen, configs)}
    drifts = [
        part
        for name, wanted in advice.items()
        for part in drift(
            seen.snapshot.nodes[name], seen.snapshot.base.numa.get(name), configs.get(name, {}), wanted
        )
    ]
    if args.printed:
        sys.stdout.write(_labels(findings) if args.printed == "labels" else _drop_ins(advice, drifts))
    else:
        _show(args.output, findings, drifts)
    return int(bool(findings or drifts))


def _aligned(seen: ClusterObjects, configs: Mapping[str, Any]) -> list[str]:
    """Returns the names of the nodes whose kubelet settings can be checked: their configuration is given,
    or they have GPUs and a known NUMA topology.
    """
    numa = seen.snapshot.base.numa
    return [
        name
        for name, node in seen.snapshot.nodes.items()
        if name in configs or (name in numa and node.allocatable.get(GPU))
    ]


def _advice(seen: ClusterObjects, name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    largest = max((pod.requests.get(GPU, 0) for pod in seen.snapshot.pods), default=0)
    return advised(seen.snapshot.nodes[name], seen.snapshot.base.numa.get(name), config, largest)


def _of_matrices(pairs: Sequence[str], seen: ClusterObjects) -> list[NodeFinding]:
    """Returns a finding for each label that follows from a node's GPU matrix (`nvidia-smi topo -m`), and
    that the node does not have, or has with another value.
    """
    result = []
    for name, file in _by_node(pairs, seen):
        matrix = read_matrix(Path(file).read_text(errors="replace"), Where(file))
        node = seen.snapshot.nodes[name]
        for key, value in matrix.labels.items():
            if node.labels.get(key) != value:
                words = (
                    f"has {key}={value} by nvidia-smi, and the label is {node.labels.get(key) or 'missing'}"
                )
                result.append(NodeFinding(name, "MatrixNotLabelled", words, (key, value)))
    return result


def _configs(pairs: Sequence[str], seen: ClusterObjects) -> dict[str, Mapping[str, Any]]:
    result: dict[str, Mapping[str, Any]] = {}
    for name, file in _by_node(pairs, seen):
        value = yaml_text(Path(file).read_text(errors="replace"), Where(file))
        config = value.get("kubeletconfig") if isinstance(value, dict) else None
        if config is None and isinstance(value, dict) and value.get("kind") == "KubeletConfiguration":
            config = value
        if not isinstance(config, dict):
            kind = value.get("kind") if isinstance(value, dict) else None
            wrong_kind = f"is of kind {kind}, which" if kind else "has no kind, and"
            wanted = "is neither a KubeletConfiguration nor the answer of configz"
            raise InputError(f"{wrong_kind} {wanted}", Where(file))
        result[name] = config
    return result


def _by_node(pairs: Sequence[str], seen: ClusterObjects) -> list[tuple[str, str]]:
    """Returns NODE and FILE of each `[NODE=]FILE`. Raises `InputError` for an unknown node, or if NODE is
    missing in a cluster of several nodes.
    """
    result = []
    for pair in pairs:
        name, _, file = pair.rpartition("=")
        if not name and len(seen.snapshot.nodes) == 1:
            (name,) = seen.snapshot.nodes
        if name not in seen.snapshot.nodes:
            raise InputError(f"no node {name!r} in the cluster; give NODE=FILE", Where(pair))
        result.append((name, file))
    return result


def _labels(findings: Sequence[NodeFinding]) -> str:
    """Returns a line with a `kubectl label` command for each finding that a label corrects."""
    commands = [
        shlex.join(["kubectl", "label", "node", finding.node, "--overwrite", "=".join(finding.label)])
        for finding in findings
        if finding.label is not None
    ]
    return "".join(f"{command}\n" for command in dict.fromkeys(commands))


def _drop_ins(advice: Mapping[str, Mapping[str, Any]], drifts: Sequence[Drift]) -> str:
    """Returns the kubelet's drop-in configuration files as YAML documents. Nodes with the same advice
    share one, with their names in a comment.
    """
    names: dict[str, list[str]] = {}
    for name in dict.fromkeys(part.node for part in drifts):
        names.setdefault(json.dumps(advice[name]), []).append(name)
    return "---\n".join(
        f"# {', '.join(nodes)}: /etc/kubernetes/kubelet.conf.d/50-bayplan.conf\n{as_yaml(json.loads(text))}"
        for text, nodes in names.items()
    )


def _show(output: str, findings: Sequence[NodeFinding], drifts: Sequence[Drift]) -> None:
    if output != "table":
        items = {
            "findings": [
                {
                    "node": finding.node,
                    "reason": finding.reason,
                    "message": finding.message,
                    "label": dict([finding.label]) if finding.label else None,
                }
                for finding in findings
            ],
            "kubelet": [
                {"node": d.node, "setting": d.setting, "actual": d.actual, "advised": d.advised}
                for d in drifts
            ],
        }
        sys.stdout.write(document(output, items))
        return
    out = terminal.console()
    if findings:
        out.print(
            terminal.table(("node", "reason", "what"), [(f.node, f.reason, f.message) for f in findings])
        )
    if drifts:
        rows = [(part.node, part.setting, part.actual, part.advised) for part in drifts]
        out.print(terminal.table(("node", "kubelet's setting", "is", "advised"), rows))
    if not findings and not drifts:
        out.print("nothing to fix")
    if any(finding.label for finding in findings):
        out.print("--print labels prints the commands that set the labels that are known")
    if drifts:
        out.print("--print kubelet prints the drop-ins")
