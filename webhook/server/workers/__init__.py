"""Worker processes that decide beside the serving process, so that decisions scale with cores.

The serving process keeps HTTP, TLS, the watches, the ledger and the controller. A worker is a fork of it that
only runs `decide`, which is pure. It shares the snapshot of the cluster as of the fork, and receives the
changes with each call. What a decision asks of its environment is answered by the thread that waits for it.

- `pool`: `Pool.decide` has the arguments of `decide`; chooses the worker, and replaces lost ones
- `process`: one worker as the serving process sees it: forked, asked, killed
- `conversation`: the thread's side of one decision: what is sent, and answers to questions meanwhile
- `child`: the code that a worker runs
- `worker_environment`: the environment of a decision in a worker
- `messages`: the messages; `link`: how they are sent; `sequences`: differences of long lists
- `cores`: how many cores this process may use

Begin with `pool`.
"""
