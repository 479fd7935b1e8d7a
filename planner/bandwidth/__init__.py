"""What a placement is worth: the time of an all-reduce in it, beside a topology-blind placement.

- `comparison`: the two beside each other; `baseline`: what kube-scheduler alone would do
- `model`, `links`: the cost model, and the rates of a cluster's links

Begin with `comparison`.
"""
