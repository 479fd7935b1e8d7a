"""`plan`, the entry point of the planner, and what is derived from its answer.

- `plan`: the placement of a whole gang, or the reason why there is none
- `admitted`: the answer for a gang with a placement
- `growth`: the answer for a gang that would have a placement if an autoscaler added nodes
- `replay`: the answer for a gang that already holds a reservation
- `reservation`: the reservation for an answer; `node_affinity`: the terms that pin pods to the placement
- `details`: the numbers behind an answer; `holding_words`: what a gang holds and why, as text
- `aside`: a plan for a gang while other gangs are planned at the same time
- `beside`: further seats for a gang beside those that it keeps
- `first_place`: the place that is kept for the first queued gang
- `defragmentation`: which gangs and pods to move to free whole domains or make room for a queued gang

The *reserve mode* of a gang (annotation `bayplan.dev/reserve`) says what it holds: `domain` (whole domains),
`nodes` (the amounts that it uses), `none`, or `auto` (the planner chooses one of the first two).

Begin with `plan`.
"""
