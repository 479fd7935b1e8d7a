"""The watched state: the cluster, workloads and gangs, and parameter objects.

A *workload* (`Work`) is a stored object of a kind that creates pods, a *flavor* a ResourceFlavor of Kueue.

- `cluster_watch`: watches nodes, pods and topologies; `live_snapshot`: the planner's snapshot of them,
  updated incrementally; `scheduler_watch`: which schedulers are installed
- `workload_watch`: watches workloads and unbound pods; `gangs` (pure): what is kept of each; `gathering`
  (pure): combines them into gangs; `gang_size` (pure): the size that KAI is told for a Job whose pods succeed
- `kueue_watch`: watches the places that Kueue has assigned, which `kueue_places` (pure) reads;
  `kueue_flavors` (pure) restricts gangs to the nodes of the flavors that Kueue chose
- `param_watch`: the parameters of policies; `parameters_watch`: those of Bayplan
- `findings` (pure): what the snapshot lacks; `mode_findings` (pure): namespaces whose mode and webhooks
  disagree; `scheduling_findings` (pure): faults of other schedulers' installations

Begin with `cluster_watch`.
"""
