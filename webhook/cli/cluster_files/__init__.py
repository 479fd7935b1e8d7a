"""Reads a cluster from files, whose format is that of `kubectl get -o yaml`.

- `reading`: the snapshot and the environment of a cluster, read once for a command
- `watched`: both, read again when a file changes, for `bayplan serve`
- `world`: the gangs of the cluster, as the controller would see them
- `file_source`: what the live page shows of the cluster after manifests are applied to it

Begin with `reading`.
"""
