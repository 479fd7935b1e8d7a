"""Commands that decide on files: `plan`, `mutate`, `report`, `replay`, `test`, `policies`. A file each.

`plan_output` prints the answers of `plan` and `new_policy` writes the folder of `policies new`. Each
command reads its inputs, asks `webhook.admission` or `planner.planning`, and prints. Begin with `mutate`,
the shortest way from a file to a decision.
"""
