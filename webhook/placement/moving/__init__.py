"""Which gangs and pods may be moved, and for which gang. Pure.

- `movables`: what may be moved, and why not; `disruption_budgets`: what the eviction API allows
- `queue_moves`: chooses the queued gang for which others are moved, and the moves

Begin with `movables`.
"""
