"""The ledger as objects in the API server, shared by all replicas.

- `ledger`: implements `planner.ledger.ledger.Ledger`
- `proposals`: takes places, in the order that etcd gives them (docs/decisions/0103)
- `confirming`: the ledger for admission calls, which watches confirm first (docs/decisions/0105)
- `owners`: finds the owner of a hold that nobody claimed
- `documents` (pure): reads and writes the objects
- `view`, `objects`: the objects as this replica knows them

Begin with `proposals`.
"""
