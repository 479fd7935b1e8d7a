"""The all-reduce time of a placement, compared with a topology-blind placement.

- `comparison`: both side by side; `baseline`: where kube-scheduler alone would place the gang
- `words`: a comparison in a sentence, and the warning to a gang that loses by its place
- `model`, `links`: the cost model, and the rates of a cluster's links
- `verification`: where a gang's pods are beside its plan, and what the model expects there
- `nccl_tests`: what was measured, as nccl-tests prints it, which is kept apart from estimates

Begin with `comparison`.
"""
