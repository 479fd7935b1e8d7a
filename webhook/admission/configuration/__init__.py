"""Reads what an administrator configures in the ConfigMap `bayplan-parameters`. Pure.

- `settings`: the settings of Bayplan for one namespace, as a record
- `setting_keys`: the keys of the ConfigMap that are settings, one row each
- `parameters`: reads the ConfigMap into settings and into parameters of policies

Each key of the ConfigMap is a *parameter*. A *setting* is a parameter of Bayplan itself; all others are
parameters of policies.

Begin with `settings`.
"""
