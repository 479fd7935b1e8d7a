"""Rules over node labels that are no level of the topology: spread, and pods kept in one value of a label.

Begin with `rules`.
"""
