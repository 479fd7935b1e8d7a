"""Commands for operators of Bayplan: `serve`, `certs`, `doctor`, `unpack`. A file each.

`serving_certificates`, `deciding`, `journaling` and `cluster_reports` are parts of `serve`. Begin with
`serve`.
"""
