"""The cluster's metadata, pure: the records of `__cluster_metadata`, the image they fold into, and the controller
that proposes them. Nothing here waits, writes or asks what time it is.
"""
