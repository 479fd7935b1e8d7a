"""The checks of `bayplan doctor`.

`checks` has a function for each property of a cluster that is checked; `rights`: what the service account may
do. Begin with `checks`.
"""
