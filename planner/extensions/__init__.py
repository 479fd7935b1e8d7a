"""Requests beyond constraints, each a loop over problems: equal parts, elastic gangs, whole domains.

- `place`: which extension handles a gang; all other gangs go to the search directly
- `equal_parts`: the same number of pods in each domain; `elastic`: as many pods as fit
- `holding`: what a gang holds that leaves this to the planner

Begin with `place`.
"""
