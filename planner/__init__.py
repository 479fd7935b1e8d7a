"""The planner: where a whole gang fits, told the same way to everyone who asks.

Pure: no I/O, clock or chance. Read in this order: `quantity`, `topology`, `node`, `podgroup`, `reservation`,
`snapshot`, `answer`, `placement`. The shell around it (`sqlite`) keeps the reservations.

Where things are:

- what is asked: `podgroup`, `shape`, `podterms`, `traits`; made definite: `choose`, `request`, `kinds`,
  `relax`, `wishes`, `settings`
- what there is: `cluster` reads it; `fabric` and `tree` (nodes in their domains), `snapshot`, `occupancy`
  and `content` (what is free in them), `layered`, `view`; topologies: `topologies`, `presets`, `propose`,
  `refined`
- the search: `climb` (levels) over `rank` (domains) over `search`, of several kinds `several`, `pooled`,
  `deal`, `piecemeal`; `classes`, `packing`, `counts`, `sums`, `cost`, `limit`, `tops`, `caps`, `parts`,
  `budget`
- where pods may be: `match`, `matching`; beside other pods: `neighbours`, `spread`, `rules`, `elsewhere`,
  `evenly`, `binding`
- inside a host: `sharing` (parts of GPUs), `mig`, `numa`, `zones`, `inside`; by claim: `claims`,
  `slices`, `devices`, `claiming`, `claimed`, `bundles`, `stock`, `layouts`, `allotting`, `cells`,
  `selectors`
- leaf-spine fabrics: `fabricgraph`, `leafspine`, `leafrooms`, `history`, `uses`
- the answer: `explain`, `refuse`, `obstacles`, `nearest`, `account`; `worth`, `rates`, `bandwidth`,
  `blind`; `ranks`, `pins`, `replay`
- days of a cluster: `simulation`, `simulated_jobs`, `strategies`, `floor`, `outcome`
"""
