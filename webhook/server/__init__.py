"""The webhook over HTTP: answers AdmissionReview calls, and serves metrics and health.

- `http`: the routes, and the deadlines and limits of a call
- `listening`: the addresses that it listens on
- `connections`: limits on open connections, bytes in flight and silent connections
- `service`: decides one call; decides again if another replica was faster
- `carrying_out`: makes, claims and releases the reservations of a decision in the ledger
- `fair_queue`: which call is decided next; `permits`: the queue on the event loop
- `workers/`: additional processes that decide, so that decisions scale with cores
- `precedence`: which of the concurrent decisions continues
- `in_flight`: reservations that this replica is about to make; `rivals`: how many other calls plan at the
  same moment
- `parameters_store`: the current parameters
- `cluster_source`: where snapshots come from (snapshots of files: `webhook.cli.cluster_files`)
- `disks`: detects full disks
- `metrics`, `leaf_spine_metrics`, `standing_metrics`: the content of /metrics; `decision_log`: a log line per
  decision
- `garbage_collection`: excludes long-lived objects from Python's garbage collector

A *call* is one AdmissionReview over HTTP; its *phase* is `mutate` or `validate`. The *ledger* records who
holds which reservation, and the *book* is its content as read at one moment. A *step* is a change of the
ledger that a decision demands; a `Wish` is the step that makes a reservation. A *flow* is a user in a
namespace: calls of one flow share their turns, as in API Priority and Fairness. A *replica* is one running
webhook server.

Begin with `service`.
"""
