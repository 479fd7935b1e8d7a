"""What was asked and answered, kept in files, read again and decided again under other policies.

- `entries`: an admission as a line of a journal, and back; what a decision is compared by
- `changes`: what policies change, field by field with the values
- `secrets`: what is left out of it
- `writer`: the files, bounded and rotated, written by a thread of their own
- `audit_log`: admissions out of the API server's audit log
- `reader`: entries out of both kinds of files, as far as they are good
- `run_lengths`: how long gangs had their places, read ahead of a replay
- `replay`: the entries decided again in their order, with holds and releases
- `courses`: what gangs hold and who waits meanwhile, as it was and as it is decided again
- `differences`: what would be different, as a report

Begin with `entries`, then `replay.Replay`.
"""
