"""Requests, answers and reservations as frozen records, in Kubernetes' terms.

- `podgroup`: the request: a gang with its PodSets; `resolved`: the same in one cluster;
  `pod`: the shape of one pod; `claim_spec`: a claim
- `answer`: the answer; `holding`: what a gang will hold; `reservation`: what it holds, and the book of all
- `node`, `topology`, `labels`, `settings`: what the API server and the administrator define
- `schedulers`: which scheduling systems a cluster has; `scheduler_facts`: what each of them reads and does
- `resources`: names of GPU resources and labels; `priority`: what a PriorityClass gives
- `volumes`: claims and volumes; `host_ports`: ports as anti-affinity; `growth`: pools that may grow
- `pod_class`: equal pods as one class, which `request` makes and `node` packs
- `quantity`, `natural_order`, `names`: numbers, sorting, the parts of names
- `errors`, `words`: invalid input, phrases of messages
- `work_budget`, `deadline`: when a search ends, in steps; when a decision ends, in time
- `cached_property`: values of a record that are worked out once

Imports nothing of the planner. Begin with `podgroup`, then `answer`.
"""
