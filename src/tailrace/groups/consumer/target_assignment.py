"""The group epoch, and the target assignment that belongs to it.

The epoch is bumped when a member joins, leaves or changes its subscription, and when a subscribed topic is created,
deleted or gets more partitions: then the hash of the subscribed topics (`metadata_hash`) changes. Changes of topics are
noticed at the next heartbeat of any member, which also matches new topic names against the group's regular expressions.
The driver computes those matches before the turn. Other changes of a group (a member that leaves, say) do not match
names, and leave that to the next heartbeat.
"""

from collections.abc import Iterable
from typing import Final

from tailrace.groups.consumer.assignors import ASSIGNORS, AssignorMember
from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.expressions import KnownMatches, matching
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.partition_sets import PartitionSet
from tailrace.groups.topics import Topics
from tailrace.groups.turn import GroupTurn
from tailrace.model.ids import Id

HASH_BYTES: Final = 8


def refresh_subscriptions(draft: Draft, *, changed: bool, may_match: bool = True) -> None:
    """Update the matches of regular expressions, and bump the epoch if the group needs a new target assignment.

    `changed`: a member has joined, left or changed its subscription. Without `may_match`, new topic names are left to
    the next heartbeat."""
    group, topics = draft.group, draft.turn.topics
    is_complete = _update_matches(draft, topics, may_match=may_match)
    found = metadata_hash(group.subscribed, topics)
    if changed or found != group.metadata_hash:
        draft.bump_epoch(found)
    if is_complete:
        group.topics_revision, group.matched_names = topics.revision, topics.names()


def names_to_match(
    group: ConsumerGroup | None, expression: str | None, topics: Topics, known_matches: KnownMatches
) -> dict[str, list[str]]:
    """The topic names that a heartbeat would match, for the member's expression and those of its group."""
    names, known = topics.names(), {} if group is None else group.expressions
    wanted: dict[str, Iterable[str]] = {}
    if group is not None and known and group.topics_revision != topics.revision:
        wanted = dict.fromkeys(known, _new_names(group, topics))
    if expression and expression not in known:
        wanted[expression] = names
    missing = {one: [name for name in some if name not in known_matches.get(one, {})] for one, some in wanted.items()}
    return {one: some for one, some in missing.items() if some}


def _new_names(group: ConsumerGroup, topics: Topics) -> list[str]:
    """Only new names are matched: matching all topics with all expressions would take too long."""
    return [name for name in topics.names() if name not in group.matched_names]


def _update_matches(draft: Draft, topics: Topics, *, may_match: bool) -> bool:
    """Returns whether all new names have been matched."""
    group = draft.group
    used = {one.profile.subscribed_topic_regex or "": None for one in group.members.values()}
    for expression in [one for one in group.expressions if one not in used]:
        draft.set_matches(expression, None)
    names, known_matches = topics.names(), draft.turn.known_matches
    new = _new_names(group, topics) if group.expressions else []
    to_match = new if may_match else []
    for expression in used:
        before = group.expressions.get(expression)
        if expression and before is None:
            draft.set_matches(expression, matching(expression, names, known_matches))
        elif before is not None and group.topics_revision != topics.revision:
            found = (*before, *matching(expression, to_match, known_matches))
            after = tuple(sorted({name: None for name in found if name in names}))
            if after != before:
                draft.set_matches(expression, after)
    return to_match == new


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """A hash of the subscribed topics that exist, with their ids and partition counts; 0: there are none."""
    found = {name: topics.find(name) for name in names}
    existing = sorted((name, known.id, known.partitions) for name, known in found.items() if known is not None)
    if not existing:
        return 0
    from hashlib import blake2b  # takes 1.5 ms, and a start needs none

    return int.from_bytes(blake2b(repr(existing).encode(), digest_size=HASH_BYTES).digest(), "big", signed=True)


def update_target(draft: Draft) -> None:
    """Compute the target assignment if it is not that of the group's epoch. Only changed targets are written."""
    group = draft.group
    if group.epoch == group.assignment_epoch:
        return
    for member_id, target in _assign(group, draft.turn).items():
        if group.target.get(member_id) != target:
            draft.set_target(member_id, target)
    draft.set_assignment_epoch(group.epoch)


def _assign(group: ConsumerGroup, turn: GroupTurn) -> dict[str, PartitionSet]:
    partitions: dict[Id, int] = {}
    members: dict[str, AssignorMember] = {}
    for member in group.members.values():
        known = [turn.topics.find(name) for name in dict.fromkeys(group.topics_of(member))]
        existing = [one for one in known if one is not None]
        partitions |= {one.id: one.partitions for one in existing}
        topics = tuple(sorted(one.id for one in existing))
        members[member.id] = AssignorMember(member.instance_id, topics, group.target.get(member.id, ()))
    return ASSIGNORS[group.assignor(turn.rules.assignors[0])](members, partitions)
