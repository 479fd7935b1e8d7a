"""JSON values as Python has them: their difference, patches, paths and depth, whatever they mean. Pure.

`diff.patch_between` makes the one patch of a decision; `patch.apply` applies a patch as the API server does;
`path` and `depth` are what both need; `stand_in` is a value that nobody may look at. Begin with `diff`.
"""
