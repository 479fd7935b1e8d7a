"""The live page of `bayplan ui`: racks, queue, gangs, decisions, policies and health. It changes nothing.

A *picture* is the state of the cluster at one moment, and a *document* is a picture as JSON, in sections
such as `racks` and `gangs`. A *viewer* is an open page, with the token of its user. The *standing* of a
gang is its state: whether it waits, and for what, or where it has its place.

- `picture`: the state of the cluster at one moment
- `document`: makes a document from a picture, and the difference of two documents
- `access`: filters a document by what a viewer may see
- `live_source`: makes pictures of a live cluster (`webhook.cli.cluster_files` makes those of a cluster in
  files)
- `decision_log`: reads decisions from the Events and Reports of a cluster
- `replica_metrics`: reads policies, reloads and the certificate from the metrics of the webhook's replicas
- `gate`: authenticates viewers; `reviews`: asks the API server what a viewer may see
- `news`: makes decisions from the changes of gangs between two pictures
- `worth`: estimates the bandwidth of a gang's placement
- `feed`: provides the newest document to all viewers; `http`: routes, event streams and their limits
- `static`: the files of the page, which need no build step

`picture`, `document`, `access`, `news` and `worth` are pure. Begin with `document`.
"""
