"""What members read, and when it is time to share it out anew: the group's epoch, and the target of that epoch.

The epoch rises when a member comes, goes or reads something else, and when a topic that is read appears, grows or
vanishes: the hash of those topics changes then. Topics are looked at in the next heartbeat of any member after they
have changed, as are the names that regular expressions match: those that whoever runs the machine has tried by then.
What else brings the group on does not wait for that.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from tailrace.groups.consumer.assigning import ASSIGNORS
from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.expressions import Tried, matching
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.shares import Share
from tailrace.groups.consumer.sharing import Wish
from tailrace.groups.topics import Topics
from tailrace.groups.turn import GroupTurn
from tailrace.model.ids import Id

HASH_BYTES: Final = 8


def look(draft: Draft, *, changed: bool, tries: bool = True) -> None:
    """Bring expressions, epoch and target up to date; `changed`: somebody came, went or reads something else. Where
    expressions must not be tried, the next heartbeat looks again."""
    group, topics = draft.group, draft.turn.topics
    is_done = _match(draft, topics, tries=tries)
    found = hash_of(group, topics)
    if changed or found != group.metadata_hash:
        draft.raise_epoch(found)
    if is_done:
        group.looked_at, group.names = topics.revision, topics.names()


def untried(group: ConsumerGroup | None, expression: str | None, topics: Topics, tried: Tried) -> dict[str, list[str]]:
    """The names that a heartbeat would have to try, by expression: that of the member, and all of its group."""
    names, known = topics.names(), {} if group is None else group.expressions
    wanted: dict[str, Iterable[str]] = {}
    if group is not None and known and group.looked_at != topics.revision:
        wanted = dict.fromkeys(known, _new(group, topics))
    if expression and expression not in known:
        wanted[expression] = names
    left = {one: [name for name in some if name not in tried.get(one, {})] for one, some in wanted.items()}
    return {one: some for one, some in left.items() if some}


def _new(group: ConsumerGroup, topics: Topics) -> list[str]:
    """Only what is new is tried: with many topics and expressions, all of it would take its time."""
    return [name for name in topics.names() if name not in group.names]


def _match(draft: Draft, topics: Topics, *, tries: bool) -> bool:
    """Whether all is tried that is new."""
    group = draft.group
    used = {one.profile.subscribed_topic_regex or "": None for one in group.members.values()}
    for expression in [one for one in group.expressions if one not in used]:
        draft.match(expression, None)
    names, tried = topics.names(), draft.turn.tried
    new = _new(group, topics) if group.expressions else []
    to_try = new if tries else []
    for expression in used:
        before = group.expressions.get(expression)
        if expression and before is None:
            draft.match(expression, matching(expression, names, tried))
        elif before is not None and group.looked_at != topics.revision:
            found = (*before, *matching(expression, to_try, tried))
            after = tuple(sorted({name: None for name in found if name in names}))
            if after != before:
                draft.match(expression, after)
    return to_try == new


def hash_of(group: ConsumerGroup, topics: Topics) -> int:
    """Of the topics that are read and there, with their partitions; 0: there are none."""
    found = {name: topics.find(name) for member in group.members.values() for name in group.topics_of(member)}
    there = sorted((name, known.id, known.partitions) for name, known in found.items() if known is not None)
    if not there:
        return 0
    return int.from_bytes(blake2b(repr(there).encode(), digest_size=HASH_BYTES).digest(), "big", signed=True)


def retarget(draft: Draft) -> None:
    """Work out who shall have what, if that is not known for the group's epoch. Only what changes is written."""
    group = draft.group
    if group.epoch == group.assignment_epoch:
        return
    for member_id, share in _shares(group, draft.turn).items():
        if group.target.get(member_id) != share:
            draft.aim(member_id, share)
    draft.aimed(group.epoch)


def _shares(group: ConsumerGroup, turn: GroupTurn) -> dict[str, Share]:
    partitions: dict[Id, int] = {}
    wishes: dict[str, Wish] = {}
    for member in group.members.values():
        known = [turn.topics.find(name) for name in dict.fromkeys(group.topics_of(member))]
        there = [one for one in known if one is not None]
        partitions |= {one.id: one.partitions for one in there}
        reads = tuple(sorted(one.id for one in there))
        wishes[member.id] = Wish(member.instance_id, reads, group.target.get(member.id, ()))
    return ASSIGNORS[group.assignor(turn.rules.assignors[0])](wishes, partitions)
