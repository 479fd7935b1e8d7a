"""Finds a new place for a gang that lost its place, or whose pods were bound outside of it. Pure.

- `replan`: after the gang lost nodes, with as few moved pods as possible
- `taken`: nodes on which other pods use what a gang has reserved
- `restore`: after its reservation has vanished
- `follow`: after its pods were bound elsewhere than planned

Begin with `replan`.
"""
