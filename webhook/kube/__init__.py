"""The cluster side: the API server as the source of what is known, and as keeper of the ledger.

Read in this order: `api` (calls; list and watch), `state` (what the watches show: cluster, workloads, gangs),
`ledger` (reservations as objects, many writers), `controller` (`reconcile` says what is to be done,
`controller` does it), `certificates`, `runtime` (all of it in one process), `doctor` (what `bayplan doctor`
looks at).
"""
