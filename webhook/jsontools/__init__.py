"""Functions on JSON values: differences, patches, paths and nesting depth. Pure.

`diff.patch_between` makes the patch of a decision, and `patch.apply` applies a patch as the API server does.
`path` has paths and JSON Pointers, and `depth` the limit of nesting. Begin with `diff`.
"""
