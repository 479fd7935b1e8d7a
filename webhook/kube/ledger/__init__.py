"""The ledger as objects in the API server, shared by all replicas.

`ledger` implements `planner.ledger.ledger.Ledger`; `proposals` takes places, in the order that etcd gives
them (docs/decisions/0103); `confirming` is the same ledger for admission calls, whose words are confirmed
by watches first (docs/decisions/0105), `owners` tells whose a hold is that nobody claimed; `documents` (pure)
reads and writes what the objects say; `view` and `objects` keep them as this replica knows them. Begin with
`proposals`.
"""
