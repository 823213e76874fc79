"""franz-go, a client for Go: the program in `go/`, which takes calls or is a member."""

from tests.interop import toolchains
from tests.interop.drivers.program import Groups, Topics, Writer


class FranzGo(Writer, Topics, Groups):
    name = "franz-go"
    tools = ("go",)
    also = frozenset(
        {
            "any bytes",
            "consumer protocol",
            "cooperative-sticky",
            "default counts",
            "describing creates nothing",
            "empty is not null",
            "error when lost",
            "null headers",
            "static members",
            "timestamps",
        }
    )

    @classmethod
    def command(cls) -> list[str]:
        return toolchains.go()

    @classmethod
    def member_command(cls) -> list[str]:
        return toolchains.go()

    @classmethod
    def release(cls) -> str:
        return toolchains.go_version()
