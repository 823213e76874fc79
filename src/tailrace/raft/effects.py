"""What a replica asks of its shell, as one value."""

from dataclasses import dataclass, field
from enum import Enum

from tailrace.model.frozen import frozen
from tailrace.model.ids import Epoch, Offset
from tailrace.raft.messages import Message
from tailrace.raft.roles import Move
from tailrace.raft.voters import Voter, Voters


@frozen
class Vote:
    """Who gets this voter's vote in `epoch`; `no_voter`: only the epoch is stored so far. On disk before it counts."""

    epoch: Epoch
    voter: Voter


class NotNow(Enum):
    """Why a hand-over or a change of voters was refused."""

    NOT_LEADER = "this replica does not lead"
    NOT_A_VOTER = "that is no voter"
    ALREADY_A_VOTER = "that broker votes already; with another disk, the old one is removed first"
    LAST_VOTER = "nobody would be left"
    CHANGE_UNDER_WAY = "another change of voters is not committed yet"
    EPOCH_NOT_COMMITTED = "nothing of the leader's own epoch is committed yet"
    NOT_CAUGHT_UP = "that replica has not caught up"


@frozen
class Effects:
    """What the shell must do before the next event, in this order.

    1. `truncate_to`: cut the log there, and report `Truncated`. Only then fetch on.
    2. `store_vote`: put it on disk, then report `VoteStored`. This may take its time: what nobody may hear before, the
       machine itself holds back until then. A later vote may take the place of one that is not stored yet.
    3. `append_leader_change`: append a control batch of the new epoch, then `progress`; serve clients only after.
       `append_voters`: append a control batch that names them, report `VotersAppended`, then `progress`. When
       the append fails, report nothing: the change was never made.
    4. `append_fetched`: append the entries that came with the `FetchAnswer`, report those that name voters, then
       `progress`. Without it, throw them away: they are stale.
    5. `send`: in any order, and once. What gets lost is repeated by the machine where it matters. An answer goes to who
       asked; none may come when the epoch moves on before a vote is stored, and any refusal will do then.
    6. `committed`: the high watermark is there now. Answer who waited for it.

    `moves` are the rows of the state table that were taken: who led, waits or watches must be told.
    `refused` says why a `Transfer`, `AddVoter` or `RemoveVoter` was not taken up.
    """

    moves: tuple[Move, ...] = ()
    truncate_to: Offset | None = None
    store_vote: Vote | None = None
    append_leader_change: bool = False
    append_voters: Voters | None = None
    append_fetched: bool = False
    send: tuple[Message, ...] = ()
    committed: Offset | None = None
    refused: NotNow | None = None


@dataclass(slots=True)
class EffectsBuilder:
    """One event's time and chance, and the effects as they come together."""

    now: float
    chance: float
    moves: list[Move] = field(default_factory=list)
    truncate_to: Offset | None = None
    store_vote: Vote | None = None
    append_leader_change: bool = False
    append_voters: Voters | None = None
    append_fetched: bool = False
    send: list[Message] = field(default_factory=list)
    committed: Offset | None = None
    refused: NotNow | None = None

    def effects(self) -> Effects:
        return Effects(
            moves=tuple(self.moves),
            truncate_to=self.truncate_to,
            store_vote=self.store_vote,
            append_leader_change=self.append_leader_change,
            append_voters=self.append_voters,
            append_fetched=self.append_fetched,
            send=tuple(self.send),
            committed=self.committed,
            refused=self.refused,
        )
