"""A cluster that stands in files, as `kubectl get -o yaml` prints it.

- `reading`: its snapshot and its environment, read once for a command
- `watched`: the same, read again when a file changes, for `bayplan serve`
- `world`: its gangs, as the controller would see them
- `file_source`: pictures of it for the live page, with manifests applied beside

Begin with `reading`.
"""
