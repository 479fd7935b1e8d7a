"""Simulation: days of a cluster under several placement strategies, with randomly drawn jobs.

- `simulate`: runs the simulation; `hall`: the simulated cluster; `jobs`: draws the jobs
- `strategy`: the interface of placement strategies; `strategies`: those without a plan; `planned`: those of
  Bayplan, without moves and with moves for gangs that have waited long
- `course`, `figures`: the *course*, which is what happens in a cluster, simulated or replayed, and its
  statistics; `rack_use`: the GPUs taken by node and rack

Begin with `simulate`.
"""
