"""Commands for operators of Bayplan: `serve`, `certs`, `doctor` and `unpack`. Each command is a file of
its own.

`serving_certificates`, `deciding`, `journaling`, `cluster_reports` and `reloads` are parts of `serve`. Begin
with `serve`.
"""
