"""Requests beyond topology constraints. Each extension runs the search for several variants of a problem.

- `place`: chooses the extensions for a gang; gangs that need none go to the search directly
- `equal_parts`: the same number of pods in each domain; `elastic`: as many pods as fit
- `holding`: what a gang holds under reserve mode `auto`

Reserve modes: a gang holds whole domains (`domain`), only what it uses (`nodes`), or nothing (`none`); under
`auto`, `holding` chooses between the first two. A *share* is here what a gang takes of one domain.

Begin with `place`.
"""
