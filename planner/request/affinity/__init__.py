"""Pod affinity and anti-affinity: with other workloads, and between the PodSets of a gang.

- `pod_affinity`: the gang with the constraints that follow
- `within_gang`: affinity and anti-affinity between its PodSets
- `neighbours`: the pods of other workloads, and whether affinity terms select them

Begin with `pod_affinity`.
"""
