"""Which devices of a node a set of ResourceClaims can have at the same time (DRA).

- `device`: a device; `slices`, `node_devices`: those that ResourceSlices offer, and those of one node
- `claims`, `catalog`, `selectors`: claims, DeviceClasses, and which devices a selector means
- `availability`: the devices of a node that are free; `device_masks`: sets of devices as bits
- `allocator`: which claims find devices of their own together; `partitions`: devices that share counters
- `pools`: devices that are plain amounts, since nothing is known of them but their number

Used by others: `AvailableDevices`, `Devices`, `Claims`, `Slices`, and the names of `pools`.

Begin with `availability`, then `allocator`.
"""
