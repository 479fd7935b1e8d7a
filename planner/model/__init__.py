"""What is asked, answered and held, as frozen records, in Kubernetes' words.

- `podgroup`: what is asked: a gang with its PodSets; `pod`: the shape of one pod; `claim_spec`: a claim
- `answer`: what is answered; `reservation`: what is held, and the book of all reservations
- `node`, `topology`, `labels`, `settings`: what there is, by the API server and the administrator
- `pod_class`: pods that nothing tells apart, which `request` makes and `node` packs
- `quantity`, `natural_order`, `errors`, `work_budget`: numbers, sorting, bad input, the work of a search

Imports nothing of the planner. Begin with `podgroup`, then `answer`.
"""
