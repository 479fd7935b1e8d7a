"""Which devices of a node a set of ResourceClaims can have at the same time (DRA).

- `slices`, `node_devices`: the devices that ResourceSlices offer, and those of one node
- `claims`, `catalog`, `selectors`: claims, DeviceClasses, and which devices a selector means
- `availability`: the devices of a node that are free; `bound_claims`: what bound pods have
- `allocator`: how many pods find devices of their own; `partitions`: devices that share counters
- `pools`: devices that are plain amounts, since nothing is known of them but their number

Begin with `allocator`.
"""
