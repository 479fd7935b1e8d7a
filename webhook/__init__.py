"""The admission webhook and what belongs to it: policies, plans written onto objects, cluster side, CLI.

    API server -- AdmissionReview -> server.http -> server.service       a manifest file -> cli.mutate
                                          |                                       |
               wire.review.decode         v                                       v
                                   admission.decision.decide   (pure: request, policies, snapshot)
                                     read                 workloads: pod templates, gangs
                                     mutating policies    policy.engine, on cel, variables and functions
                                     plan                 placement, on planner.planning.plan
                                     apply the plan       placement: annotations, gate, tolerations
                                     validating policies  policy.engine
                                     one patch            jsontools.diff
                                          |                                       |
               reserve in the ledger,     v                                       v
    API server <- AdmissionReview -- wire.review.encode                  YAML, a diff or a report

The packages, from the bottom up; each imports only what stands before it in this list:

- `jsontools`: JSON values: difference, patch, path, depth
- `cel`: the CEL engine
- `wire`: AdmissionReview v1, decoded and encoded
- `workloads`: from an object of any kind to its pod templates and gangs
- `files`: YAML and JSON files read from disk
- `functions`: what policies can call and CEL has no short expression for
- `policy`: policies loaded, run and tested
- `placement`: the plan of a workload, and what it writes onto objects
- `variables`: `gang`, `plan` and `cluster` as policies read them
- `admission`: the decision on a request; pure
- `server`: the webhook over HTTP
- `report`: what policies and plan would do to many objects, in seven formats
- `kube`: the cluster side: watches, the ledger in the API server, the controller, certificates
- `cli`: the commands of `bayplan`

Begin with `admission.decision.decide`.
"""
