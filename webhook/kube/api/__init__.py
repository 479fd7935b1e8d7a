"""Calls to the API server: requests, watches, access reviews.

`client` makes calls, `reflector` lists and watches one resource, `store` keeps what was read of its objects,
`watches` runs several reflectors, `access_reviews` answers the CEL `authorizer`. Begin with `client`.
"""
