"""Commands that evaluate manifests, policies or recorded requests in files: `plan`, `mutate`, `report`,
`replay`, `test` and `policies`. Each command is a file of its own.

`plan_output` prints the answers of `plan`, and `new_policy` writes the folder of `policies new`. Each command
reads its inputs, calls `webhook.admission` or `planner.planning`, and prints the result. Begin with `mutate`,
the simplest of them.
"""
