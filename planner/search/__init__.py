"""The best placement of a problem in a tree of domains, exact, or said not to be.

- `place`: the placement of a problem; one table says which search serves which request
- `level_search`: the finest level at which the gang fits in one domain
- `domain_ranking`: the best domain of a level; `domain_packing`: the cheapest packing into its children
- `objective`: what is cheapest; `bounds`: what no placement can cost less than
- `space`, `eligibility_map`, `capacity_classes`: the tree as one request sees it, equal domains together
- `mixtures`: several kinds of pods; `rules`: rules over labels that are no level

Begin with `place`.
"""
