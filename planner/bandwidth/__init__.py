"""Estimates the all-reduce time of a placement, compared with a topology-blind placement.

- `comparison`: both side by side; `baseline`: where kube-scheduler alone would place the gang
- `words`: a comparison in a sentence; `preferred_level`: the warning to a gang that loses by its place
- `model`, `links`: the cost model, and the rates of a cluster's links
- `verification`: where a gang's pods are, compared with its plan, and what the model expects there
- `nccl_tests`: reads measurements of nccl-tests, which are kept apart from estimates

Begin with `comparison`.
"""
