"""JSON values as Python has them: their difference, patches, paths and depth, whatever they mean. Pure.

`diff.patch_between` makes the one patch of a decision; `patch.apply` applies a patch as the API server does;
`path` and `depth` are what both need. Begin with `diff`.
"""
