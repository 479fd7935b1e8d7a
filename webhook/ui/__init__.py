"""The live page of `bayplan ui`: the fabric, the queue, gangs, decisions, policies and health. Reads only.

- `picture`: the state of the cluster at one moment
- `document`: a picture as JSON in sections, and the difference of two documents
- `access`: filters a document by what a viewer may see
- `live_source`: pictures of a live cluster (`webhook.cli.cluster_files` makes those of a cluster in files)
- `decision_log`: reads decisions from the Events and Reports of a cluster
- `replica_metrics`: reads policies, reloads and the certificate from the metrics of replicas
- `gate`: authenticates viewers; `reviews`: asks the API server what a viewer may see
- `news`: the changes of gangs between two pictures
- `worth`: the estimated bandwidth of a gang's placement
- `feed`: the newest document for all viewers; `http`: routes, event streams and their limits
- `static`: the files of the page, which need no build step

`picture`, `document`, `access`, `news` and `worth` are pure. Begin with `document`.
"""
