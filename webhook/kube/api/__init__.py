"""Calls to the API server: requests, watches, access reviews.

`client` makes calls, `reflector` lists and watches one resource, `store` keeps its objects as they were read,
`watches` runs several of them, `access_reviews` answers the CEL `authorizer`. Begin with `client`.
"""
