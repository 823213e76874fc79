"""The common part of AlterConfigs and IncrementalAlterConfigs: each resource has its own result.

A resource is a topic, a broker, all brokers (a broker with an empty name), or a group.
"""

from collections.abc import Sequence

from tailrace.broker.services.admin import Alteration
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import repeated
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.wire.faults import error_of
from tailrace.wire.messages.alter_configs import AlteredResource


async def alter_each(
    call: Call, alterations: Sequence[Alteration], *, validate_only: bool
) -> tuple[AlteredResource, ...]:
    twice = repeated((one.kind, one.name) for one in alterations)
    once = [one for one in alterations if (one.kind, one.name) not in twice]
    faults = await call.services.admin.alter_settings(call.caller, once, validate_only=validate_only)
    altered = [_altered(one.kind, one.name, fault) for one, fault in zip(once, faults, strict=True)]
    fault = InvalidRequest("Each resource must appear at most once.")
    return (*altered, *(_altered(kind, name, fault) for kind, name in twice))


def _altered(kind: int, name: str, fault: Fault | None) -> AlteredResource:
    if fault is None:
        return AlteredResource(resource_type=kind, resource_name=name)
    return AlteredResource(resource_type=kind, resource_name=name, error_code=error_of(fault), error_message=str(fault))
