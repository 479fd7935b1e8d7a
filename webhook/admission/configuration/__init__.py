"""What an administrator configures for a namespace: the settings, and the ConfigMap that states them. Pure.

- `settings`: the settings of one namespace, as a record
- `setting_keys`: the keys of the ConfigMap that are settings, one row each
- `parameters`: the ConfigMap itself, read into settings and into parameters of policies

Begin with `settings`.
"""
