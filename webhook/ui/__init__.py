"""The live page of `bayplan ui`: the fabric, the queue, gangs, decisions, policies and health. Reads only.

- `picture`: what is known at one moment; `document`: the same as JSON, section by section, and what differs
- `access`: what a viewer may see of a document
- `live_source`: pictures of a watched cluster (those of a cluster in files: `webhook.cli.cluster_files`)
- `decision_log`: what Events and Reports of a cluster tell of decisions
- `replica_metrics`: what the replicas tell of policies, reloads and the certificate
- `gate`: who a viewer is; `reviews`: what the API server lets them see
- `news`: what became of gangs between two looks
- `worth`: what the place of a gang is worth
- `feed`: the newest document for everybody; `http`: the routes, the streams and their bounds
- `static`: the page itself, which no build makes

`picture`, `document`, `access`, `news` and `worth` are pure. Begin with `document`.
"""
