"""A feature and the levels of it that a broker supports: what it registers, by RegisterBroker or JoinCluster.

Releases before 0.2.0 do not know the tagged field that holds these: they register none, and skip those of others.
"""

from tailrace.wire.schema import Int16, struct


@struct
class RegisteredFeature:
    name: str
    first: Int16
    last: Int16
