"""Generic JSON values: difference, patches, paths and depth. Pure.

`diff.patch_between` makes the patch of a decision; `patch.apply` applies a patch as the API server does; both
use `path` and `depth`. Begin with `diff`.
"""
