"""Days of a cluster under several strategies to place gangs, on jobs that are drawn.

- `simulate`: the run; `hall`: the cluster in it; `jobs`: the drawn jobs
- `strategies`: ways to place; `results`: what a run comes to

Begin with `simulate`.
"""
