"""Why a gang has no placement, in words and numbers, and which similar request has one.

- `diagnosis`: the queued or rejected answer, with its reason
- `obstacles`: nodes counted by what keeps the pods away
- `alternatives`: similar requests that were searched and have a placement
- `messages`, `numa_messages`, `spread_messages`, `fabric_messages`: the sentences

Begin with `diagnosis`.
"""
