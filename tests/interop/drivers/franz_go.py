"""franz-go, a client for Go: the program in `go/`, which takes calls or is a member.

A static member of the consumer protocol that leaves for a while does not say its instance id (1.22). Kafka refuses
that, and so do we: it counts as one that fell silent, and can come back only when its session is over.
A member of a share group does not take up a topic that is deleted and made again (1.22), not with Kafka either.
"""

from tests.interop import toolchains
from tests.interop.client import BASICS
from tests.interop.drivers.program import Groups, ShareGroups, Topics, Writer


class FranzGo(Writer, Topics, Groups, ShareGroups):
    name = "franz-go"
    tools = ("go",)
    also = BASICS | {
        "consumer protocol",
        "cooperative-sticky",
        "default counts",
        "describing creates nothing",
        "null headers",
        "renews locks",
        "single records",
    }

    @classmethod
    def command(cls) -> list[str]:
        return toolchains.go()

    @classmethod
    def member_command(cls) -> list[str]:
        return toolchains.go()

    @classmethod
    def share_member_command(cls) -> list[str]:
        return toolchains.go()

    @classmethod
    def release(cls) -> str:
        return toolchains.go_version()
