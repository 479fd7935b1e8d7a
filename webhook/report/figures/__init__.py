"""Prints and draws courses (the use of a cluster over time, from a simulation or a replay) and their figures.

- `rows`: the figures as rows of text, for tables in any format
- `plot`: draws courses as SVG
- `page`: an HTML page with the plot and the tables of figures
- `table`: prints the figures on a terminal

Begin with `rows`.
"""
