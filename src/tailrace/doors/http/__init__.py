"""The HTTP door: a server of HTTP/1.1 of our own, and the APIs that it serves as route tables.

`server` and `connection` are the protocol, `incoming` its bounds, `origins` which web pages are refused; `routes` and
`messages` are what an API is made of; `errors` gives every fault a status.
"""

from tailrace.doors.http.door import HttpDoor

__all__ = ["HttpDoor"]
