"""Why a gang has no placement, in words and numbers, and which nearest request has one.

- `diagnosis`: the queued or rejected answer, with its reason
- `obstacles`: each node by what keeps the pods away
- `alternatives`: requests near this one that were planned and have a place
- `messages`, `numa_messages`, `spread_messages`, `fabric_messages`: the sentences

Begin with `diagnosis`.
"""
