"""The figures of a cluster's course, simulated or replayed: as rows of tables, drawn, and as a page.

- `rows`: the figures in words, for tables of any kind
- `plot`: courses as an SVG; `page`: that and the figures as HTML; `table`: the figures for a terminal

Begin with `rows`.
"""
