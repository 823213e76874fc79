"""Every bound of the broker, with its unit last. Relations between them are asserted here."""

from typing import Final

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB

# The wire
FRAME_MAX_BYTES: Final = 100 * MiB
NAMES_PER_REQUEST_MAX: Final = 50_000  # partitions, groups or ids that one request asks about: each costs the loop time
NAMES_PER_TURN_MAX: Final = 500  # of those, before the loop looks at its other work
REQUEST_ELEMENTS_MAX: Final = 20_000  # in all arrays of a request together, but for plain numbers
REQUEST_ELEMENTS_BY_NAME_MAX: Final = (
    2 * NAMES_PER_REQUEST_MAX
)  # of one that asks about partitions, each a struct in a topic
FRAME_READ_BYTES: Final = 256 * KiB  # what one read from a socket may bring, when no larger frame is under way
ARRAY_MAX_ELEMENTS: Final = 1_000_000
ELEMENTS_MAX: Final = 10 * ARRAY_MAX_ELEMENTS  # in all arrays of what others than clients have written
PRODUCE_TEMPLATE_MAX_BYTES: Final = 1 * KiB  # of a Produce request before its batch, kept per connection
TAGGED_FIELDS_MAX: Final = 32  # of a struct: Kafka has a handful at most
CLIENT_TEXT_MAX_BYTES: Final = 32 * KiB - 1  # a non-flexible string's length is an int16
SMALL_REQUEST_MAX_BYTES: Final = 4 * MiB  # of any request that carries no records; decoding one takes the loop's time
FAULT_TEXT_MAX_CHARS: Final = (
    1_000  # of what we say about a fault: it may repeat a client's text, and must fit an answer
)

# Connections
REQUESTS_IN_FLIGHT_MAX: Final = 1_000  # per connection: answers that wait, in request order
FETCH_SESSIONS_MAX: Final = 1_000
FETCH_SESSION_PARTITIONS_MAX: Final = 100_000  # in all sessions together
FETCH_SESSION_KEPT_S: Final = 120  # a session used within this time does not make room for another
FETCH_WAIT_MAX_MS: Final = 300_000  # a client that is gone may not be noticed before its Fetch is answered
FETCH_ANSWER_MAX_BYTES: Final = 55 * MiB
FETCH_ANSWER_SCARCE_BYTES: Final = (
    64 * KiB
)  # while more than `ANSWERS_UNSENT_MAX_BYTES` wait for clients that do not read
READ_AHEAD_MAX_BYTES: Final = 16 * MiB  # in all pieces that are ready for consumers which catch up
READ_AHEAD_MIN_BYTES: Final = 64 * KiB  # who asks for less gets nothing ready: it would gain nothing
READ_AHEAD_PER_ANSWER_MAX: Final = 4  # pieces, of as many partitions: each takes the loop a fifth of a millisecond
READ_AHEAD_KEPT_S: Final = 1  # a piece that nobody has asked for by then is forgotten
ANSWERS_UNSENT_MAX_BYTES: Final = 512 * MiB
ENCODED_TOPICS_KEPT_MAX_BYTES: Final = 64 * MiB  # of Metadata's answer, in all versions asked for

# Peers
PEER_CONNECTIONS_MAX: Final = 1_000  # accepted; three for each other broker
PEER_HELLO_MAX_BYTES: Final = 4 * KiB  # of either side's first frame: who is not known yet costs little
PEER_REQUEST_MAX_BYTES: Final = 16 * MiB  # of a frame on the peers' port, unless socket.request.max.bytes allows more
PEER_CONTROL_UNSENT_MAX_BYTES: Final = 16 * MiB  # on a control lane whose other end does not read: it is dropped
PEER_FETCH_UNSENT_MAX_BYTES: Final = (
    2 * FRAME_MAX_BYTES
)  # on the other lanes: an answer is a frame, and one is under way
PEER_CALLS_UNDER_WAY_MAX: Final = 1_000  # per control lane
RAFT_MESSAGES_PER_FRAME_MAX: Final = 1_000
RAFT_MESSAGES_GATHERED_MAX: Final = (
    100_000  # for one peer in one turn of the loop; what is beyond is dropped, and repeated
)
FETCH_NAMED_MAX: Final = 500  # partitions that a follower's fetch names, and that its answer brings
PARTITIONS_PER_TURN_MAX: Final = 200  # whose news are taken in before the loop looks at its other work
ELECTIONS_AT_ONCE_MAX: Final = 100  # of this broker's partitions
EARLY_MESSAGES_MAX: Final = 100_000  # for partitions that this broker does not know yet: its metadata is on its way
HELD_MESSAGES_MAX: Final = 1_000  # for a partition whose log is being cut, which a full disk can make long

# Record batches
BATCH_HEADER_BYTES: Final = 61
RECORD_BATCH_MAX_BYTES: Final = 90 * MiB
RECORDS_PER_BATCH_MAX: Final = 10_000_000
DECOMPRESSED_MAX_BYTES: Final = 256 * MiB
ADMITTED_OPEN_MAX_BYTES: Final = 16 * MiB  # decompressed, of a batch that is opened on the loop before it is appended
ADMITTED_OPEN_MAX_RECORDS: Final = 20_000  # of such a batch: each takes the loop one microsecond or two
DECODED_RUN_MAX_BYTES: Final = (
    64 * MiB
)  # of decompressed batches that the pipeline decodes at once; one alone may be larger

# The log
SEGMENT_MAX_BYTES: Final = 2 * GiB - 1  # positions in the index are 32 bits
DESCRIPTORS_OPEN_MAX: Final = 512
PRODUCER_BATCHES_KEPT: Final = 5  # Kafka clients keep at most five requests in flight
PRODUCERS_PER_PARTITION_MAX: Final = 100_000

# Topics
TOPIC_NAME_MAX_CHARS: Final = 249
PARTITIONS_PER_TOPIC_MAX: Final = 10_000
PARTITIONS_PER_REQUEST_MAX: Final = 10_000
RESOURCES_PER_REQUEST_MAX: Final = 10_000  # whose settings one request asks for: with what they mean, some 10 KiB each
PARTITIONS_PER_BROKER_MAX: Final = 100_000  # one takes some 4 KiB of memory before its first record

# Coordinators
COORDINATOR_LOG_CUT_MIN_RECORDS: Final = 100_000  # of a partition that one reads: a shorter one is read in seconds
ALARMS_PER_TURN_MAX: Final = (
    1_000  # that ring at once, each of which may write something: after a pause, all may be due
)

# Groups
GROUP_SUBSCRIPTIONS_MAX_BYTES: Final = 16 * MiB  # of all members of a group: its generation is one record
GROUP_PROTOCOLS_MAX: Final = 100  # of a member, by which work can be shared with it; clients have one to three
GROUP_PENDING_MEMBERS_MAX: Final = 10_000  # ids given out to clients that have not come back yet, per group
GROUP_REBALANCE_MIN_MS: Final = (
    100  # whatever members say: who waits for static ones that are away looks again after it
)
GROUP_SUBSCRIBED_NAMES_MAX: Final = 1_000_000  # that all members of a consumer group name
GROUP_OWNED_PARTITIONS_MAX: Final = 100_000  # that a member of a consumer group may say it has
GROUP_EXPRESSIONS_MAX: Final = 100  # regular expressions of a group, each of which is tried on every new topic
GROUP_EXPRESSION_MAX_CHARS: Final = 1_000  # of a regular expression that a member subscribes by
GROUP_EXPRESSION_MAX_STEPS: Final = 4_000  # of the program that it is compiled to: at worst, a name takes some 15 ms
GROUP_EXPRESSION_MAX_BYTES: Final = (
    1 * MiB
)  # of that program and what it keeps while it runs; RE2 compiles no larger one

# Transactions
PARTITIONS_PER_TRANSACTION_MAX: Final = 100_000  # a transaction is one record
MARKS_PER_CALL_MAX: Final = 1_000  # that a coordinator sends to one broker at once; a mark has some 60 bytes

assert RECORD_BATCH_MAX_BYTES < FRAME_MAX_BYTES
assert ADMITTED_OPEN_MAX_BYTES < DECOMPRESSED_MAX_BYTES
assert 2 * GiB > DECODED_RUN_MAX_BYTES + DECOMPRESSED_MAX_BYTES + FRAME_MAX_BYTES  # places in a run have 32 bits
assert PARTITIONS_PER_TRANSACTION_MAX * (TOPIC_NAME_MAX_CHARS + 8) < RECORD_BATCH_MAX_BYTES
assert GROUP_SUBSCRIPTIONS_MAX_BYTES + SMALL_REQUEST_MAX_BYTES < RECORD_BATCH_MAX_BYTES
assert FETCH_ANSWER_MAX_BYTES < FRAME_MAX_BYTES
assert FETCH_ANSWER_SCARCE_BYTES < FETCH_ANSWER_MAX_BYTES < ANSWERS_UNSENT_MAX_BYTES
assert 4 * FAULT_TEXT_MAX_CHARS < CLIENT_TEXT_MAX_BYTES
assert SMALL_REQUEST_MAX_BYTES < FRAME_MAX_BYTES
assert FRAME_READ_BYTES < FRAME_MAX_BYTES
assert RAFT_MESSAGES_PER_FRAME_MAX * 128 < PEER_REQUEST_MAX_BYTES  # no message has more, but for EndEpoch to dozens
assert SMALL_REQUEST_MAX_BYTES < PEER_REQUEST_MAX_BYTES < FRAME_MAX_BYTES
