"""The checks of `bayplan doctor`.

`checks` lists them, each asking one thing of a cluster; `rights`: what the service account may do. Begin
with `checks`.
"""
