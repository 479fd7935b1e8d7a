"""The checks of `bayplan doctor`.

`checks` has a function for each property of a cluster that is checked; `patient`: what is examined.
`replica_checks`: whether the replicas run, and what they say of themselves; `dry_run`: how long a GPU pod
takes; `rights`: what the service account may do. Begin with `checks`.
"""
