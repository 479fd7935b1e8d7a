"""Worker processes that make decisions for the serving process, so that decisions scale with cores.

The serving process keeps HTTP, TLS, the watches, the ledger and the controller. A worker is a fork of it that
only runs `decide`, a pure function. The worker shares the memory of the cluster's snapshot at the time of the
fork, and receives the changes since then with each job. A thread of the serving process waits for each
decision, and answers the questions that the decision asks of its environment (for example, about
permissions).

- `pool`: `Pool.decide` has the arguments of `decide`; chooses the worker, and replaces lost ones
- `process`: one worker as the serving process sees it: forked, asked, killed
- `conversation`: what the waiting thread sends with a job, and its answers to questions
- `child`: the code that a worker runs
- `worker_environment`: the environment of a decision in a worker
- `messages`: the messages; `link`: how they are sent
- `cores`: how many cores this process may use

Begin with `pool`.
"""
