"""Simulation: days of a cluster under several placement strategies, with randomly drawn jobs.

- `simulate`: the run; `hall`: the simulated cluster; `jobs`: the drawn jobs
- `strategies`: ways to place gangs; `results`: the statistics of runs

Begin with `simulate`.
"""
