"""Explains why a gang has no placement, with numbers, and which similar requests have one.

- `diagnosis`: the queued or rejected answer with its reason
- `obstacles`: counts the nodes by the first cause that keeps the pods away
- `alternatives`: similar requests that were searched and have a placement
- `pod_changes`: changes of single pods for `alternatives` to search
- `growth`: gangs that would have a placement if an autoscaler added nodes
- `node_words`, `label_values`: the node counts as text, with the existing values of a label
- `messages`, `numa_messages`, `spread_messages`, `fabric_messages`: the sentences of the message

Begin with `diagnosis`.
"""
