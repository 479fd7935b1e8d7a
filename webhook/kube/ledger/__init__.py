"""The ledger as objects in the API server, shared by all replicas.

`ledger` implements `planner.ledger.ledger.Ledger`; `writer` makes commits, one at a time, by the version of
one object (docs/decisions/0030); `commits` (pure) reads what the objects say; `view` and `objects` keep them
as this replica knows them. Begin with `commits`.
"""
