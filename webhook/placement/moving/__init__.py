"""Decides which gangs and pods may be moved, and for which queued gang. Pure.

A *movable* is a gang or a single pod that moves as a unit: its pods end, and start again elsewhere.

- `movables`: reads what may be moved, and why the rest may not
- `disruption_budgets`: what the eviction API allows
- `queue_moves`: chooses the queued gang for which others are moved, and the moves

Begin with `movables`.
"""
