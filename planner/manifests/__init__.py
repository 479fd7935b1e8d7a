"""Kubernetes objects read into the planner's records, and Reservations written as objects.

- `cluster`: a whole cluster: nodes, pods, topologies, slices, limits, settings
- `pod`, `pod_affinity`, `numa`, `gpu_sharing`, `devices`: what a pod's spec asks for
- `topology`, `label_presets`, `topology_proposal`: topologies as objects, and those that labels tell
- `settings`: schedulers' ConfigMaps, LimitRanges, ResourceQuotas
- `reservation`: a Reservation, read and written
- `fields`: typed fields of untyped objects; what cannot be used is an `InputError` that names the field

Begin with `cluster`.
"""
