"""The new place of a gang that has one no longer, or not where its pods are. Pure.

- `replan`: after the gang lost nodes, with as few moved pods as possible
- `restore`: after its reservation has vanished
- `follow`: where its pods were bound elsewhere than planned

Begin with `replan`.
"""
