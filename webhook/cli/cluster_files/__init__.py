"""Reads a cluster from files, as `kubectl get -o yaml` prints it.

- `reading`: the snapshot and the environment of a cluster, read once for a command
- `watched`: the same, read again when a file changes, for `bayplan serve`
- `world`: the gangs of the cluster, as the controller would see them
- `file_source`: the pictures of the cluster for the live page, with manifests applied to it

Begin with `reading`.
"""
