"""Prints and draws the figures of a cluster over time, from a simulation or a replay.

- `rows`: the figures as rows of text, for tables in any format
- `plot`: draws courses as SVG
- `page`: an HTML page with plot and figures
- `table`: prints the figures on a terminal

Begin with `rows`.
"""
