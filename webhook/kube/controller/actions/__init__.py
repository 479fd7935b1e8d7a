"""Carries out the actions that `reconcile` returned. Nothing here decides which ones.

- `runner`: runs the actions of a round
- `gated_pods` (pure): the patches of pods; `pod_patches`: applies them
- `admitted_pods`: lets in the pods of a gang, with its place or without one
- `place_notes` (pure): the annotations about a place; `workload_notes`: writes them onto workloads
- `events`: writes events for users
- `scheduler_words`: why the scheduler does not bind a gang's pods

Begin with `runner`.
"""
