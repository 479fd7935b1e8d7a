"""The planner: where a whole gang fits, told the same way to all who ask. No I/O, no clock, no chance.

    plan(snapshot, gang)                     planning/plan.py
      held  -> replay                        planning/replay.py
      problem = resolve(snapshot, gang)      request/      what is asked, made definite; or a Refusal
      place(problem)                         search/       over the trees of cluster/, pods on hosts by node/
      placed? -> the answer and what it reserves; if not -> explain/: why, and what would work

The packages, from the bottom up; each imports only what stands before it in this list:

- `model`: what is asked, answered and held: frozen records and Kubernetes' words
- `devices`: which devices of a node a set of claims can have (DRA)
- `node`: how many pods a node takes, with all that kubelet and device plugins look at
- `cluster`: what there is at a moment: nodes in trees, what is on them, free capacity by domain; immutable
- `manifests`: Kubernetes objects read into these records, and Reservations written
- `request`: a PodGroup made definite in a cluster, every contradiction told
- `search`: the best placement in a tree, exact or said not to be
- `ledger`: who holds what: protocol, conflicts, SQLite
- `explain`: why there is no place, and what nearest request has a place
- `leafspine`: nod-ai's rules over a fabric of switches
- `planning`: `plan`, replay, the reservation and node affinity that follow from an answer
- `bandwidth`: what a place is worth
- `simulation`: days of a cluster under several strategies
"""
