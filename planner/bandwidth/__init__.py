"""The all-reduce time of a placement, compared with a topology-blind placement.

- `comparison`: both side by side; `baseline`: where kube-scheduler alone would place the gang
- `model`, `links`: the cost model, and the rates of a cluster's links

Begin with `comparison`.
"""
