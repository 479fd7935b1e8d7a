"""The decision on a request: from policies and a snapshot to patch, answer and ledger steps. Pure.

- `decision`: `decide`, the steps of the way, and the `Decision` they end in
- `context`: `RequestContext`, the immutable inputs of a decision; `environment`: those that a cluster gives
- `configuration`: what an administrator configures for a namespace, and the ConfigMap that states it
- `modes`: the mode of a namespace, and what is done there of a decision
- `evaluation`: `Evaluation`, what was worked out of them, asked for by name
- `plan_step`: the plan of the object's gangs, made once and replayed when policies have written it
- `unchanged`: which pod templates policies may mend; `fewer_replicas`: whether what they wrote lets fewer fit
- `bounds`: what one object may ask of a plan; `too_long`: the answer where a decision takes too long
- `used_topology`: a Topology that is taken away while gangs use it
- `reapply`: what a second `kubectl apply` must not undo
- `response`: refusal, warnings and audit annotations; `ledger_steps`: reserve, claim, release

Begin with `decision`.
"""
