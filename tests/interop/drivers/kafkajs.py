"""kafkajs, a client for Node: `node/calls.js` and `node/member.js`.

It has no readers without a group, one compression, no static members.
"""

from collections.abc import Sequence

from tests.interop import toolchains
from tests.interop.drivers.program import Groups, Topics


class KafkaJs(Topics, Groups):
    name = "kafkajs"
    tools = ("node", "npm")

    @classmethod
    def command(cls) -> list[str]:
        return toolchains.node("calls.js")

    @classmethod
    def member_command(cls) -> list[str]:
        return toolchains.node("member.js")

    def write_keyed(self, topic: str, keys: Sequence[str]) -> None:
        errors = self.ask("write_keyed", topic=topic, keys=list(keys))
        assert not any(errors)

    @classmethod
    def release(cls) -> str:
        return toolchains.node_version()
