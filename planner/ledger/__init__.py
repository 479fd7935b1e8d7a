"""Who holds what: the protocol of a ledger, when two reservations conflict, and a ledger in one SQLite file.

- `ledger`: the Protocol, which the ledger in the API server keeps too, and its errors
- `conflicts`: which reservations cannot live side by side; pure
- `sqlite`, `sqlite_schema`: the ledger on disk, the planner's only I/O

Begin with `ledger`, then `conflicts`.
"""
