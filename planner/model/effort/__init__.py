"""The limits of a search: a number of steps, and a time.

- `work_budget`: the limit of one search in steps
- `deadline`: the limit of a decision in time, which all its long loops poll

Begin with `work_budget`.
"""
