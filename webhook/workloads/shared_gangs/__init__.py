"""Gangs of several objects: which gang single pods join, its parts, and the members combined. Pure.

- `pod_groups`: the gang that pods join by a PodGroup, or by the keys of KAI, Kueue, Volcano or Bayplan
- `subgroups`: the parts of such a gang, for example prefill and decode
- `shares`: the share of one object in its gang
- `merge`: combines the members of one gang, so that each object is planned as part of the whole

Other packages mainly use `PodGroups`, `MAIN`, `OTHERS` of `pod_groups`, and `joined`, `with_whole_gang` of
`merge`.

Begin with `pod_groups`.
"""
