"""Why a gang has no placement, in words and numbers, and which similar request has one.

- `diagnosis`: the queued or rejected answer, with its reason
- `obstacles`: nodes counted by what keeps the pods away
- `alternatives`: similar requests that were searched and have a placement; `pod_changes`: those of other
  pods
- `growth`: which nodes that may still come would hold the gang
- `node_words`, `label_values`: the counts in words, with the values that labels have
- `messages`, `numa_messages`, `spread_messages`, `fabric_messages`: the sentences

Begin with `diagnosis`.
"""
