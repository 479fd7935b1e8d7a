"""Simulation: days of a cluster under several placement strategies, with randomly drawn jobs.

- `simulate`: the run; `hall`: the simulated cluster; `jobs`: the drawn jobs
- `strategy`: what the run asks of a way to place gangs; `strategies`: the ways without a plan; `planned`:
  Bayplan's, also with moves for gangs that wait for long
- `course`, `figures`: what happens in a cluster, simulated or replayed, and its statistics; `rack_use`: GPUs
  taken by node and rack

Begin with `simulate`.
"""
