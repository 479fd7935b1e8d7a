"""Requests beyond constraints, each a loop over problems: equal parts and elastic gangs; see `place.py`.

Begin with `place_gang`: it says which extension serves which gang, and what serves all others.
"""
