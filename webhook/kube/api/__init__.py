"""Calls to the API server: requests, lookups, watches, access reviews.

`kubeconfig` makes the client of a cluster and user, `credential_plugin` runs the program that prints a user's
credentials, `proxies` finds the proxy. `client` makes calls, `outage` wakes who waits for the server, `tasks`
runs several calls at the same time, `discovery` looks up which resources are served, `reflector` lists and
watches one resource, `store` keeps what was read of its objects, `watches` runs several reflectors,
`access_reviews` answers the CEL `authorizer`. Begin with `client`.
"""
