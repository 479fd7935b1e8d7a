"""Commands for operators of Bayplan: `serve`, `certs`, `doctor` and `unpack`. Each command is a file of
its own.

`serving_certificates`, `deciding`, `journaling` and `cluster_reports` are parts of `serve`. Begin with
`serve`.
"""
