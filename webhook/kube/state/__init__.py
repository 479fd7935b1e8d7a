"""What the watches know: the cluster, workloads and gangs, parameter objects.

`cluster_watch` keeps nodes, pods and topologies, `live_snapshot` the planner's snapshot of them, changed
rather than built anew; `scheduler_watch` keeps which schedulers are there; `workload_watch` keeps workloads,
`gangs` (pure) what is kept of each, `gathering` (pure) who waits, runs and is done; `gang_size` (pure) what
KAI is told of a Job whose pods succeed; `kueue_watch` keeps the places that Kueue has assigned, which
`kueue_places` (pure) reads; `kueue_flavors` (pure) puts gangs on the nodes of the flavors that Kueue chose;
`param_watch` keeps the parameters of policies, `parameters_watch` those of Bayplan; `findings` (pure) tells
what the picture lacks, `mode_findings` (pure) where modes and webhooks disagree, `scheduling_findings` (pure)
what schedulers beside Bayplan lack.
Begin with `cluster_watch`.
"""
