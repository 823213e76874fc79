"""Effects: what the shell must do after one event, as one value."""

from dataclasses import dataclass, field
from enum import Enum

from tailrace.model.frozen import frozen
from tailrace.model.ids import Epoch, Offset
from tailrace.raft.messages import Message
from tailrace.raft.roles import Move
from tailrace.raft.voters import Voter, Voters


@frozen
class Vote:
    """This voter's vote in `epoch`; `NO_VOTER`: only the epoch is stored so far. It counts once it is on disk."""

    epoch: Epoch
    voter: Voter


class ChangeRefusal(Enum):
    """Why a leadership transfer or a voter change was refused."""

    NOT_LEADER = "this replica is not the leader"
    NOT_A_VOTER = "that replica is not a voter"
    ALREADY_A_VOTER = "that broker has a voter already; to replace its disk, remove the old voter first"
    LAST_VOTER = "the last voter cannot be removed"
    CHANGE_UNDER_WAY = "another voter change is not committed yet"
    EPOCH_NOT_COMMITTED = "no entry of the leader's own epoch is committed yet"
    NOT_CAUGHT_UP = "that replica has not caught up"


@frozen
class Effects:
    """What the shell must do before the next event, in this order.

    1. `truncate_to`: truncate the log and report `Truncated`. Fetch again only after that. `begin_anew`: note durably
       that this replica may not vote, set its log aside, report `BegunAnew`, and fetch again only after that.
    2. `store_vote`: write the vote to disk, then report `VoteStored`. The write may take its time: the machine holds
       back the messages that would reveal the vote until it is stored. A later vote may replace one that is not stored
       yet.
    3. `append_leader_change`: append a leader-change control batch of the new epoch, then call `progress`; serve
       clients only after that. `append_voters`: append a control batch with these voters, report `VotersAppended`,
       then call `progress`. If the append fails, report nothing: the change was not made.
    4. `append_fetched`: append the entries of the `FetchAnswer`, report `VotersAppended` for voter sets among them,
       then call `progress`. Without `append_fetched` discard the entries: they are stale.
    5. `send`: send each message once, in any order. The machine repeats lost messages where it matters. An answer goes
       to the sender of the request. A vote request gets no answer if the epoch changes before the vote is stored; any
       refusal is a correct answer then.
    6. `committed`: the new high watermark. Complete the requests that waited for it.

    `moves` are the transitions that were made, for those that depend on the role.
    `refused` is the reason why a `Transfer`, `AddVoter` or `RemoveVoter` was refused.
    """

    moves: tuple[Move, ...] = ()
    truncate_to: Offset | None = None
    begin_anew: bool = False
    store_vote: Vote | None = None
    append_leader_change: bool = False
    append_voters: Voters | None = None
    append_fetched: bool = False
    send: tuple[Message, ...] = ()
    committed: Offset | None = None
    refused: ChangeRefusal | None = None


@dataclass(slots=True)
class EffectsBuilder:
    """Collects the effects of one event; `now` and `chance`, from [0, 1), are that event's."""

    now: float
    chance: float
    moves: list[Move] = field(default_factory=list)
    truncate_to: Offset | None = None
    begin_anew: bool = False
    store_vote: Vote | None = None
    append_leader_change: bool = False
    append_voters: Voters | None = None
    append_fetched: bool = False
    send: list[Message] = field(default_factory=list)
    committed: Offset | None = None
    refused: ChangeRefusal | None = None

    def effects(self) -> Effects:
        return Effects(
            moves=tuple(self.moves),
            truncate_to=self.truncate_to,
            begin_anew=self.begin_anew,
            store_vote=self.store_vote,
            append_leader_change=self.append_leader_change,
            append_voters=self.append_voters,
            append_fetched=self.append_fetched,
            send=tuple(self.send),
            committed=self.committed,
            refused=self.refused,
        )
