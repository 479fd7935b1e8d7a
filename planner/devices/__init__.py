"""Which devices of a node can be allocated to a set of ResourceClaims at the same time (DRA).

- `device`: a device; `slices`, `node_devices`: the devices in ResourceSlices, and the devices of one node
- `claims`, `catalog`, `selectors`: claims, DeviceClasses, and which devices a selector matches
- `availability`: the free devices of a node; `device_masks`: sets of devices as bits
- `allocator`: which claims can be allocated together; `partitions`: devices that share counters
- `pools`: devices counted as plain amounts, where nothing but their number is known

Used by others: `AvailableDevices`, `Devices`, `Claims`, `Slices`, and the names of `pools`.

Begin with `availability`, then `allocator`.
"""
