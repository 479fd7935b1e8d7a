"""Estimates the all-reduce time of a placement, compared with a topology-blind placement.

- `comparison`: both side by side; `baseline`: where kube-scheduler alone would place the gang
- `words`: a comparison in a sentence; `preferred_level`: the warning for a gang that is spread over several
  domains of its preferred level, and so is slower
- `model`, `links`: the cost model, and the rates of a cluster's links
- `verification`: where a gang's pods are, compared with its plan, and what the model expects there
- `nccl_tests`: reads measurements of nccl-tests, which are kept apart from estimates

*Bus bandwidth* is NCCL's measure, 2S(n−1)/(n·t) for S bytes over n GPUs in t seconds, which compares with the
rate of the links. A *topology-blind* placement is pod by pod, by kube-scheduler's default score (`baseline`).

Begin with `comparison`.
"""
