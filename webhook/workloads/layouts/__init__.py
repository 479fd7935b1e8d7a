"""The pod layout of each workload kind: one function per kind, from an object to a `WorkloadLayout`. Pure.

- `layout`: PodSets, and which of them start together
- `kubernetes`: Kubernetes' own kinds; `placement_groups`: JobSet and LeaderWorkerSet; `operators`: the kinds
  of training operators, Ray and Grove
- `grouping`: the gangs that annotations, or a gang of several objects, make of a layout
- `exclusive_placement`: the anti-affinity that JobSet and LeaderWorkerSet give their pods

Begin with `layout`.
"""
