"""Which gangs and pods may be moved elsewhere, and for whom they are. Pure.

- `movables`: what may be moved, and why not; `disruption_budgets`: what the eviction API allows
- `queue_moves`: for which gang of the queue others move, and who

Begin with `movables`.
"""
