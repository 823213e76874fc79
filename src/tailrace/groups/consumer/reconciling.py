"""Bring one member a step closer to what it shall have, when it is heard of.

It keeps what it has and shall have. What it has and shall not have it must give up first, and stays in its epoch until
it says that it did. Then it is in the target's epoch, and gets what nobody else has.
"""

from dataclasses import replace

from tailrace.groups.consumer.draft import Draft
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import ConsumerMember, Standing
from tailrace.groups.consumer.shares import Share, both, share, without
from tailrace.groups.consumer.states import STEPS, MemberState, Step, Taken


def reconcile(draft: Draft, member_id: str, owned: Share | None, *, is_sure: bool = False) -> None:
    """`owned` is what the member says it has; None: it does not say. `is_sure`: it cannot have been told of more."""
    group, member = draft.group, draft.member(member_id)
    if group.has_arrived(member):
        return
    step, standing = _next(group, member, owned, is_sure)
    if standing == member.standing:
        return
    draft.turn.steps.append((member_id, Taken(member.standing.state, step, standing.state)))
    draft.stand(member_id, standing)
    if standing.state is MemberState.UNREVOKED and not member.is_classic:  # those must join again in time
        draft.turn.alarm(group.rebalance_of(member_id), member.profile.rebalance_timeout_ms)
    else:
        draft.turn.alarms.cancel(group.rebalance_of(member_id))


def _next(group: ConsumerGroup, member: ConsumerMember, owned: Share | None, is_sure: bool) -> tuple[Step, Standing]:
    now, target = member.standing, group.target.get(member.id, ())
    epoch = now.epoch
    if now.state is MemberState.UNREVOKED:
        if _has(now.revoking, owned):
            return Step.GIVE_UP, now
        epoch += 1  # it has done what was asked; what it has given up is free
    keeps = both(now.assigned, target)
    gives_up = without(now.assigned, target)
    # A member that does not have it yet may have been told to, and begin at any moment: it must be told first.
    if gives_up and (not is_sure or _has(gives_up, owned)):
        return Step.GIVE_UP, _stand(now, Step.GIVE_UP, epoch, keeps, gives_up)
    wants = without(target, keeps)
    gets = tuple(one for one in wants if group.owners.get(one, member.id) == member.id)
    step = Step.SETTLE if len(gets) == len(wants) else Step.WAIT
    return step, _stand(now, step, group.assignment_epoch, share(keeps + gets), ())


def _has(partitions: Share, owned: Share | None) -> bool:
    """Whether a member may still have some of these; one that does not say may have all."""
    return owned is None or bool(both(partitions, owned))


def _stand(now: Standing, step: Step, epoch: int, assigned: Share, revoking: Share) -> Standing:
    return replace(
        now,
        epoch=epoch,
        previous_epoch=now.epoch if epoch != now.epoch else now.previous_epoch,
        state=STEPS[now.state, step],
        assigned=assigned,
        revoking=revoking,
    )
