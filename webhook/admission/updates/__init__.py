"""Decides what admission may change in an update, or in an object that a controller creates, so that
admission alone never causes pods to be replaced. Pure.

- `unchanged`: which pod templates policies and plan may change
- `reapply`: keeps a second `kubectl apply` from undoing what admission wrote
- `resized_gang`: where the pods of a gang go that grows, shrinks or asks for other levels
- `fewer_replicas`: whether changes of policies let fewer pods fit

Begin with `unchanged`.
"""
