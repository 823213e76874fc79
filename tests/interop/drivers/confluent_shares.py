"""confluent-kafka and share groups: members, and the settings of groups."""

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.interop.client import Client
from tests.interop.drivers.confluent_refusals import only
from tests.interop.drivers.confluent_settings import changed
from tests.interop.member import in_python
from tests.interop.shapes import Setting
from tests.interop.share_member import Mode, ShareMember

OF_A_GROUP = 8  # the source DYNAMIC_GROUP_CONFIG, for which confluent-kafka has no name


class ConfluentShares(Client):
    _admin: AdminClient

    def share_member(self, topic: str, group: str, mode: Mode = "implicit") -> ShareMember:
        return ShareMember(self.name, in_python("confluent_shares"), self.bootstrap, topic, group, mode)

    def group_settings(self, group: str) -> dict[str, Setting]:
        entries = only(self._admin.describe_configs([ConfigResource(ResourceType.GROUP, group)]))
        return {name: Setting(value=one.value, own=one.source == OF_A_GROUP) for name, one in entries.items()}

    def change_group_settings(self, group: str, changes: Mapping[str, str | None]) -> None:
        resource = changed(ResourceType.GROUP, group, changes)
        only(self._admin.incremental_alter_configs([resource]))
