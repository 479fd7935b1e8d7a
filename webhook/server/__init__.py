"""The webhook over HTTP: AdmissionReview calls answered, metrics, health.

- `http`: the routes, deadlines and limits of a call
- `listening`: the addresses that it listens on
- `connections`: how many connections and bytes at once, and how long they may be silent
- `service`: one call decided and its reservation made, again where somebody else was faster
- `fair_queue`: whose call is decided next; `seats`: on the event loop
- `workers/`: other processes that decide, so that decisions scale with cores
- `precedence`: which of the decisions that run at once goes on
- `in_flight`: reservations that this replica is about to make
- `parameters_store`: the parameters that answer now
- `cluster_source`: where snapshots come from (those of files: `webhook.cli.cluster_files`)
- `disks`: which of those that are written are full
- `metrics`, `leaf_spine_metrics`, `standing_metrics`: what /metrics shows; `decision_log`: a line a decision
- `garbage_collection`: Python's collector kept away from what lives as long as the process

Begin with `service`.
"""
