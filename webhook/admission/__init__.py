"""Decides an admission request: from policies and a snapshot, makes patch, response and ledger steps. Pure.

- `decision`: `decide`, which takes the steps one after the other; `decision_record`: its result, `Decision`
- `context`: `RequestContext`, the immutable inputs of a decision; `environment`: those that a cluster gives
- `configuration`: what an administrator configures for a namespace, and the ConfigMap that states it
- `modes`: the mode of a namespace, and what each mode does with a decision
- `evaluation`: `Evaluation`, the values that a decision computes from its inputs, by name
- `level_of_policies`: says in an answer that policies require a level
- `plan_step`: the plan of the object's gangs, made once, and repeated after policies have written it
- `updates`: which pod templates policies and plan may change in an update, and what a second `kubectl apply`
  keeps
- `own_keys`: removes from pod templates the keys of a plan that admission did not write
- `size`: the largest object that is read; `bounds`: the largest request that is planned; `too_long`: the
  answer when a decision takes too long
- `used_topology`: warns when a Topology that gangs use is changed or deleted
- `response`: refusal, warnings and audit annotations; `ledger_steps`: reserve, claim, release

The *plan* says where the gangs of the object go. An *effect* is what one policy, or the plan, changes of the
object. A *tentative reservation* is a reservation of the plan that is only in the snapshot of this request,
not in the ledger. A *hold* is a reservation that expires unless its object is stored and claims it.

Begin with `decision`.
"""
