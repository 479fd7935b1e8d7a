"""Calls to the API server: requests, discovery, watches, access reviews.

`client` makes calls, `discovery` looks up what is served, `reflector` lists and watches one resource, `store`
keeps what was read of its objects, `watches` runs several reflectors, `access_reviews` answers the CEL `authorizer`. Begin with `client`.
"""
