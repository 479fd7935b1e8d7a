"""The admission webhook and its parts: policies, plans, the cluster side and the command line.

    API server -- AdmissionReview -> server.http -> server.service       a manifest file -> cli.mutate
                                          |                                       |
               wire.review.decode         v                                       v
                                   admission.decision.decide   (pure: request, policies, snapshot)
                                     read                 workloads: pod templates, gangs
                                     mutating policies    policy, on cel and variables
                                     plan                 placement, on planner.planning.plan
                                     apply the plan       placement: annotations, gate, tolerations
                                     validating policies  policy.engine
                                     one patch            jsontools.diff
                                          |                                       |
               reserve in the ledger,     v                                       v
    API server <- AdmissionReview -- wire.review.encode                  YAML, a diff or a report

The packages; each imports only what stands below it in this list:

- `cli`: the commands of `bayplan`
- `ui`: the live page: map, queue, gangs and decisions in a browser
- `kube`: the cluster side: watches, the ledger in the API server, the controller, certificates
- `journal`: records admissions in files, and replays them
- `server`: the webhook over HTTP
- `report`: what policies and plan would do to many objects, in seven formats
- `admission`: the decision on a request; pure
- `variables`: `gang`, `plan` and `cluster` as policies read them
- `placement`: the plan of a workload, and what it writes onto objects
- `policy`: loads, runs and tests policies; `policy.functions`: functions in addition to Kubernetes'
- `files`: YAML and JSON files read from disk
- `workloads`: from an object of any kind to its pod templates and gangs
- `wire`: AdmissionReview v1, decoded and encoded
- `cel`: the CEL engine
- `jsontools`: JSON values: difference, patch, path, depth

Begin with `admission.decision.decide`.
"""
