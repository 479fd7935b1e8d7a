"""Records admission requests and decisions in files, and decides them again with other policies.

- `entries`: an admission as a line of the journal, and the part of a decision that a replay compares
- `changes`: the fields that policies change, with their values
- `secrets`: removes secret values from objects
- `writer`: writes the files in a thread, with limits and rotation
- `audit_log`: reads admissions from the API server's audit log
- `reader`: reads entries from journals and audit logs, from each file up to the first invalid line
- `run_lengths`: how long gangs ran, which a replay needs in advance
- `shared_gangs`: the stored members of gangs of several objects during a replay
- `replay`: decides the entries again in their order, with reservations and releases
- `courses`: the recorded and the replayed course of the cluster: holders and waiting gangs over time
- `differences`: reports the differences between recorded and replayed decisions

An *admission* is one call of the webhook with its answer, and an *entry* is its record. A *course* is how
many GPUs are in use, and which gangs wait, over time.

Begin with `entries`, then `replay.Replay`.
"""
