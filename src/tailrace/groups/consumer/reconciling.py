"""Reconcile one member with its target assignment, one step for each of its heartbeats.

The member keeps what it owns of its target. It has to revoke everything else first, and stays in its epoch until it
has acknowledged that. Then it enters the target's epoch and gets those partitions of its target that no other member
owns.
"""

from dataclasses import replace

from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import ConsumerMember, CurrentAssignment
from tailrace.groups.consumer.partition_sets import PartitionSet, difference, intersection, partition_set
from tailrace.groups.consumer.states import STEPS, MemberMove, MemberState, Step


def reconcile(draft: Draft, member_id: str, owned: PartitionSet | None, *, is_sure: bool = False) -> None:
    """`owned`: the partitions that the member reports; None: it reports none with this request.

    `is_sure`: the report is complete, no answer with further partitions can be on its way to the member."""
    group, member = draft.group, draft.member(member_id)
    if group.has_reached_target(member):
        return
    step, after = _next(group, member, owned, is_sure)
    if after == member.current:
        return
    draft.turn.member_moves.append((member_id, MemberMove(member.current.state, step, after.state)))
    draft.set_current(member_id, after)
    if after.state is MemberState.UNREVOKED and not member.is_classic:  # classic members have to rejoin in time
        draft.turn.alarm(group.rebalance_alarm(member_id), member.profile.rebalance_timeout_ms)
    else:
        draft.turn.alarms.cancel(group.rebalance_alarm(member_id))


def _next(
    group: ConsumerGroup, member: ConsumerMember, owned: PartitionSet | None, is_sure: bool
) -> tuple[Step, CurrentAssignment]:
    now, target = member.current, group.target.get(member.id, ())
    epoch = now.epoch
    if now.state is MemberState.UNREVOKED:
        if _may_own(now.revoking, owned):
            return Step.REVOKE, now
        epoch += 1  # the revocation is acknowledged, and the revoked partitions are free
    keeps = intersection(now.assigned, target)
    revokes = difference(now.assigned, target)
    # An answer on its way may assign these to a member that does not report them yet: it has to revoke them first.
    if revokes and (not is_sure or _may_own(revokes, owned)):
        return Step.REVOKE, _after(now, Step.REVOKE, epoch, keeps, revokes)
    missing = difference(target, keeps)
    free = tuple(one for one in missing if group.owners.get(one, member.id) == member.id)
    step = Step.SETTLE if len(free) == len(missing) else Step.WAIT
    return step, _after(now, step, group.assignment_epoch, partition_set(keeps + free), ())


def _may_own(partitions: PartitionSet, owned: PartitionSet | None) -> bool:
    """Whether a member may still own some of these; without a report (None) it may own all."""
    return owned is None or bool(intersection(partitions, owned))


def _after(
    now: CurrentAssignment, step: Step, epoch: int, assigned: PartitionSet, revoking: PartitionSet
) -> CurrentAssignment:
    return replace(
        now,
        epoch=epoch,
        previous_epoch=now.epoch if epoch != now.epoch else now.previous_epoch,
        state=STEPS[now.state, step],
        assigned=assigned,
        revoking=revoking,
    )
