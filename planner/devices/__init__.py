"""Decides which devices of a node can be allocated to a set of ResourceClaims at the same time (DRA).

- `device`: a device; `slices`: the devices in ResourceSlices; `node_devices`: the devices of one node;
  `devices_by_node`: those of every node
- `claims`, `catalog`, `selectors`: claims, DeviceClasses, and which devices a selector matches
- `bound_claims`: what the claims of bound pods take from their nodes
- `availability`: the free devices of a node; `device_masks`: sets of devices as bits
- `allocation`: which claims can be allocated together
- `pools`: devices counted as plain amounts; `node_offers`: the amount of each pool on a node

Words of this package:

- *pool*: a resource name under which the planner counts devices, for example `gpu.nvidia.com`. Only in
  `slices` and in device names (`DeviceId`), a pool is the `spec.pool` of a ResourceSlice.
- *promised*: used by a bound pod or reserved by a gang. A promised claim is *pending* until devices are
  allocated to it.
- *claim spec*: the content of a claim (`ClaimSpec`): its requests and constraints, named by a digest of them
- *counter*: an amount that several devices share, for example the memory slices of a GPU that MIG divides on
  demand (`sharedCounters` of a ResourceSlice)
- *device group*: devices that are allocated together or not at all; *demand*: how many of which groups a
  claim needs
- *tie*: a constraint inside a device group: equal values of an attribute, or all different ones
- *item*: a device group, as far as the devices of one partition can serve it
- *partition*: devices of one node that share no counter or constrained attribute value with the others
- *kind of node*: the nodes with the same devices (`NodeKind`)

Used by others: `AvailableDevices`, `Devices`, `Claims`, `Slices`, and the names of `pools`.

Begin with `availability`, then `allocation`.
"""
