"""The cluster's metadata, as pure code: the records of `__cluster_metadata`, the image that they build, and the
controller that proposes them. There is no I/O and no clock here.
"""
