"""Decodes and encodes AdmissionReview v1. No I/O.

`review.decode` and `review.encode` convert from and to bytes. `request.AdmissionRequest` is the decoded
request; `request.from_object` makes one from a manifest, without an API server. `review` also has the limit
of a body (`BODY_LIMIT`) and breaks warnings into lines for kubectl (`fit_warnings`). Begin with `request`.
"""
