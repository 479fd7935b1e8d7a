"""The ledger as Reservation objects in the API server, shared by all replicas.

Words:
- *proposal*: a Reservation that was written, but not yet judged against those that were written before it
- to *judge*: to find out whether a reservation that was written before conflicts with this one
- *order*: the resource version with which a place was written; of two that exclude each other the lower wins
- *wish*: a reservation that a call asks for, with the revision of the book that it was planned on
- *withdraw*: delete a proposal that lost, or whose call has ended
- *mode* of a reservation: `domain` holds domains whole, `nodes` only room for its pods, `none` nothing
- *headroom*: what a plan leaves free on its nodes, which others may take before the plan is reserved

Modules:
- `ledger`: implements `planner.ledger.ledger.Ledger`
- `proposals`: takes places, in the order in which etcd stores them (docs/decisions/0103)
- `expired_holds`: ends holds that were not claimed in time
- `confirming`: the ledger for admission calls: a claim waits until a watch shows the object (0105)
- `owners`: finds the stored object of a hold that nobody has claimed
- `documents` (pure): reads and writes the objects
- `view`, `objects`: the objects as this replica knows them

Begin with `proposals`.
"""
