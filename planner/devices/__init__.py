"""Which devices of a node can be allocated to a set of ResourceClaims at the same time (DRA).

- `device`: a device; `slices`: the devices in ResourceSlices; `node_devices`, `devices_by_node`: those of
  one node, and of every node
- `claims`, `catalog`, `selectors`: claims, DeviceClasses, and which devices a selector matches
- `availability`: the free devices of a node; `device_masks`: sets of devices as bits
- `allocator`: which claims can be allocated together; `demand_fit`: whether a node's devices meet a demand;
  `partitions`: devices that share counters
- `pools`: devices counted as plain amounts, where nothing but their number is known; `node_offers`: what a
  node has of them

Used by others: `AvailableDevices`, `Devices`, `Claims`, `Slices`, and the names of `pools`.

Begin with `availability`, then `allocator`.
"""
