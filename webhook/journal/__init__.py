"""Records admission requests and decisions in files, and decides them again with other policies.

- `entries`: converts an admission to a line of the journal and back, and the part of a decision to compare
- `changes`: the fields that policies change, with their values
- `secrets`: removes secret values from objects
- `writer`: writes the files in a thread, with limits and rotation
- `audit_log`: reads admissions from the API server's audit log
- `reader`: reads entries from journals and audit logs, as far as they are valid
- `run_lengths`: how long gangs ran, which a replay needs in advance
- `replay`: decides the entries again in their order, with reservations and releases
- `courses`: the recorded and the replayed course of the cluster: holders and waiting gangs over time
- `differences`: reports the differences between recorded and replayed decisions

Begin with `entries`, then `replay.Replay`.
"""
