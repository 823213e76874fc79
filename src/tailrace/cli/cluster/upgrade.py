"""`tailrace cluster upgrade`: raise the cluster's feature levels, once every broker runs a release that supports them.

The levels come from the first broker of `--bootstrap` that answers: what it supports is what the cluster is raised to.
The controller decides, by UpdateFeatures: a dry run first, always, and the raise itself only with `--yes`.
"""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from tailrace import __version__
from tailrace.cli.client.client_config import Access
from tailrace.cli.client.direct_requests import BrokerConnection, connect_any
from tailrace.cli.failure import Failed
from tailrace.cli.output import print_json
from tailrace.wire.errors import Error
from tailrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tailrace.wire.messages.update_features import FeatureToUpdate, UpdateFeaturesRequest, UpdateFeaturesResponse
from tailrace.wire.schema import declaration

ANSWERED_WITHIN_S: Final = 10.0
AGAIN_S: Final = 0.2
CANNOT_BE_UNDONE: Final = (
    "A raise cannot be undone: brokers of earlier releases are refused from then on, "
    "and no broker of this cluster can go back to one."
)


class Step(NamedTuple):
    """A feature, the level in force, and the newest one that the broker supports."""

    feature: str
    level: int
    newest: int


def run_upgrade(access: Access, *, yes: bool, as_json: bool) -> None:
    with connect_any(access) as asked:
        if not asked.knows(declaration(UpdateFeaturesRequest).number):
            raise Failed(
                "this broker cannot raise feature levels: it runs tailrace 0.1.0, or is no Tailrace broker.\n"
                "Restart it with a later release, or name another broker with --bootstrap."
            )
        versions = asked(ApiVersionsRequest(client_software_name="tailrace", client_software_version=__version__))
        steps = _steps(versions)
        refusal = _update(asked, steps, validate_only=True) if steps else ""
        if not as_json:
            _show(steps, refusal)
        raised = False
        if yes and steps and not refusal:
            refusal = _update(asked, steps, validate_only=False)
            raised = not refusal
        _report(steps, refusal, raised=raised, yes=yes, as_json=as_json)


def _steps(versions: ApiVersionsResponse) -> list[Step]:
    in_force = {one.name: one.max_version_level for one in versions.finalized_features}
    found = [Step(one.name, in_force.get(one.name, 0), one.max_version) for one in versions.supported_features]
    return [step for step in found if step.level < step.newest]


def _update(asked: BrokerConnection, steps: Sequence[Step], *, validate_only: bool) -> str:
    """Why the controller refuses; "" if it does not. While there is no controller it is asked again."""
    updates = tuple(FeatureToUpdate(feature=one.feature, max_version_level=one.newest) for one in steps)
    deadline = time.monotonic() + ANSWERED_WITHIN_S
    while True:
        answer: UpdateFeaturesResponse = asked(
            UpdateFeaturesRequest(feature_updates=updates, validate_only=validate_only)
        )
        if not answer.error_code:
            return ""
        if not Error(answer.error_code).retriable or time.monotonic() > deadline:
            return answer.error_message or Error(answer.error_code).name
        time.sleep(AGAIN_S)


def _show(steps: Sequence[Step], refusal: str) -> None:
    """What would be done, and that it cannot be undone: before it is."""
    for one in steps:
        print(f"{one.feature} is at level {one.level}; the newest level that this broker supports is {one.newest}.")
    if steps and not refusal:
        print(f"Every registered broker supports it.\n{CANNOT_BE_UNDONE}", flush=True)


def _report(steps: Sequence[Step], refusal: str, *, raised: bool, yes: bool, as_json: bool) -> None:
    if as_json:
        features = [{"feature": one.feature, "level": one.level, "newest": one.newest} for one in steps]
        print_json({"features": features, "refusal": refusal or None, "raised": raised})
    if refusal:
        raise Failed(f"nothing was raised: {refusal}.")
    if as_json:
        return
    if not steps:
        print("Every feature is at the newest level that this broker supports. There is nothing to raise.")
    elif raised:
        print(", ".join(f"{one.feature} is at level {one.newest} now" for one in steps) + ".")
    elif not yes:
        print("This was a dry run, nothing was changed. To raise it: tailrace cluster upgrade --yes")
