"""AdmissionReview v1: a call decoded, an answer encoded. No I/O.

`review.decode` and `review.encode` are bytes in, bytes out; `request.AdmissionRequest` is what everything
else works on, and `request.from_object` makes one without the API server. Begin with `request`.
"""
