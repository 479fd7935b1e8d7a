"""Reservations in a ledger: its protocol, conflicts between reservations, and a ledger in one SQLite file.

Words of this package: the *book* is the content of a ledger, all reservations; its *revision* grows with
every change. A *hold* is a reservation that expires unless it is *claimed*: made permanent because its
workload exists. A reservation is *live* until it expires or is removed. A reservation of mode `domain` holds
whole domains, one of mode `nodes` what its pods use.

- `ledger`: the Protocol (the ledger in the API server implements it too) and its errors
- `conflicts`: which reservations cannot exist together; pure
- `sqlite`, `sqlite_schema`: the ledger on disk, the only I/O of the planner

Begin with `ledger`, then `conflicts`.
"""
