"""Explains why a gang has no placement, with numbers, and which similar requests have one.

- `diagnosis`: the queued or rejected answer with its reason
- `obstacles`: counts the nodes by the first cause that keeps the pods away
- `alternatives`: similar requests that were searched and have a placement
- `fewer_pods`: the largest number of pods that has a placement, for `alternatives`
- `pod_changes`: changes of single pods for `alternatives` to search
- `domain_choices`: pods that select different domains of the required level
- `node_words`, `label_values`: the node counts as text, with the existing values of a label
- `messages`, `numa_messages`, `spread_messages`, `fabric_messages`: the sentences of the message

Words:

- *cause*: the text for why a node does not take a pod, for example "cordoned" or "insufficient cpu"
- *shortfall*: the PodSets that have no placement, and the failed search
- *change*: a changed request that was not yet searched; *alternative*: one that the search admits
- *occupied*: whether a search is in the cluster as it is, or as if it had no pods and reservations
- *reservable level*: the level of a topology whose domains a gang holds whole if it spans several of them
- *raised*: an amount that a policy increased above what the pod's author stated

Begin with `diagnosis`.
"""
