"""Processes that decide beside the one that serves, so that decisions scale with cores.

The serving process keeps HTTP, TLS, the watches, the ledger and the controller. A worker is a fork of it that
does one thing: `decide`, which is pure. It shares the picture of the cluster as it was at the fork, and
follows it from one call to the next by what has changed. What a decision asks of its environment meanwhile is
answered by the thread that waits for it.

- `pool`: `Pool.decide` has the arguments of `decide`; which process decides, and what becomes of lost ones
- `process`: one worker as the serving process sees it: forked, asked, killed
- `conversation`: the thread's side of one decision: what is sent, and answers to what is asked meanwhile
- `child`: what a worker runs
- `worker_environment`: the environment of a decision in a worker
- `messages`: what travels; `link`: how; `sequences`: long lists that change little
- `cores`: how many cores this process is given

Begin with `pool`.
"""
