"""Every bound of the broker, with its unit last. Relations between bounds are asserted at the end.

"The loop" is the event loop: work on it delays every other request, so many bounds limit its time.
"""

from typing import Final

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB

# The wire
FRAME_MAX_BYTES: Final = 100 * MiB
NAMES_PER_REQUEST_MAX: Final = 50_000  # partitions, groups or ids that one request names: each takes time on the loop
NAMES_PER_TURN_MAX: Final = 500  # of those, before the loop runs other work
REQUEST_ELEMENTS_MAX: Final = 20_000  # in all arrays of a request together, without arrays of plain numbers
# The same for a request that names partitions: each is a struct inside a topic.
REQUEST_ELEMENTS_BY_NAME_MAX: Final = 2 * NAMES_PER_REQUEST_MAX
FRAME_READ_BYTES: Final = 256 * KiB  # buffer of one read from a socket, unless a larger frame is being received
ARRAY_MAX_ELEMENTS: Final = 1_000_000
ELEMENTS_MAX: Final = 10 * ARRAY_MAX_ELEMENTS  # in all arrays of a message that was not sent by a client
PRODUCE_TEMPLATE_MAX_BYTES: Final = 1 * KiB  # of a Produce before its batch: kept per connection
TAGGED_FIELDS_MAX: Final = 32  # of a struct; Kafka has a handful at most
CLIENT_TEXT_MAX_BYTES: Final = 32 * KiB - 1  # the length of a non-flexible string is an int16
SMALL_REQUEST_MAX_BYTES: Final = 4 * MiB  # of a request without records; decoding it takes time on the loop
FAULT_TEXT_MAX_CHARS: Final = 1_000  # of a fault's message: it may repeat a client's text, and must fit into an answer

# Connections
REQUESTS_IN_FLIGHT_MAX: Final = 1_000  # per connection: requests without an answer yet, in request order
FETCH_SESSIONS_MAX: Final = 1_000
FETCH_SESSION_PARTITIONS_MAX: Final = 100_000  # in all sessions together
SHARE_SESSION_PARTITIONS_MAX: Final = 2_000  # of one session; each request looks at all of them
FETCH_SESSION_KEPT_S: Final = 120  # a session used within this time is not evicted for another
FETCH_WAIT_MAX_MS: Final = 300_000  # a disconnected client may not be noticed before its Fetch is answered
FETCH_ANSWER_MAX_BYTES: Final = 55 * MiB
FETCH_ANSWER_SCARCE_BYTES: Final = 64 * KiB  # while more than `ANSWERS_UNSENT_MAX_BYTES` wait for slow readers
READ_AHEAD_MAX_BYTES: Final = 16 * MiB  # of all pieces read ahead for consumers that catch up
READ_AHEAD_MIN_BYTES: Final = 64 * KiB  # nothing is read ahead for smaller fetches: they would gain nothing
READ_AHEAD_PER_ANSWER_MAX: Final = 4  # pieces, each of another partition: each takes 0.2 ms on the loop
READ_AHEAD_KEPT_S: Final = 1  # a piece that is not fetched by then is dropped
ANSWERS_UNSENT_MAX_BYTES: Final = 512 * MiB
ENCODED_TOPICS_KEPT_MAX_BYTES: Final = 64 * MiB  # of encoded Metadata responses, in all requested versions

# The DMQP door
DMQP_PAYLOAD_MAX_BYTES: Final = 1 * MiB  # of one message, as the protocol says
DMQP_READ_BYTES: Final = 64 * KiB  # buffer of one read; what was read and not served yet is kept per connection
DMQP_REQUESTS_IN_FLIGHT_MAX: Final = 1_000  # per connection, without an answer yet; then nothing is read from it
DMQP_IN_FLIGHT_MAX_BYTES: Final = 4 * MiB  # of their payloads, the same
DMQP_PAYLOADS_HELD_MAX_BYTES: Final = 256 * MiB  # of all connections together; beyond, payloads are refused by EAGAIN
DMQP_UNREAD_MAX_BYTES: Final = 256 * MiB  # of answers to all clients that do not read; then the slowest are cut off
DMQP_UNSENT_MAX_BYTES: Final = 64 * KiB  # of answers that a client does not read, before its requests wait
# The gRPC door
GRPC_MESSAGE_MAX_BYTES: Final = 4 * MiB  # of a request, the bound that gRPC itself has by default
GRPC_METADATA_MAX_BYTES: Final = 16 * KiB  # of a call's headers
GRPC_CALLS_MAX: Final = 1_000  # under way on all connections, streams included; more are refused
GRPC_CALLS_PER_CONNECTION_MAX: Final = 200  # HTTP/2 streams; a client waits before it opens more
GRPC_WINDOW_BYTES: Final = 256 * KiB  # of a stream, which its client may send before anybody reads
GRPC_READS_MAX: Final = 64  # requests of unary calls that are being read, beyond the window of each; others wait
GRPC_READ_MAX_S: Final = 30  # for the request of a unary call to arrive
GRPC_HELD_MAX_BYTES: Final = 256 * MiB  # of all requests that are being served; more are refused
GRPC_STREAM_UNANSWERED_MAX: Final = 64  # requests of a producing stream, before the next is read
GRPC_CONSUMERS_MAX: Final = 200  # consuming and working streams; each has connections and a buffer of its own
GRPC_FETCH_MAX_BYTES: Final = 2 * MiB  # what a consuming stream fetches from each broker at once
GRPC_RESPONSE_RECORDS_MAX_BYTES: Final = 1 * MiB  # of records in one response; a single record may be larger
GRPC_RESPONSE_RECORDS_MAX: Final = 10_000  # records in one response, whatever a client asks for
GRPC_UNSETTLED_MAX: Final = 10_000  # messages that a working stream may hold at a time
GRPC_NAMES_PER_REQUEST_MAX: Final = 1_000  # partitions, topics or settings that one request names
GRPC_FETCH_WAIT_MAX_MS: Final = 60_000

# Peers
PEER_CONNECTIONS_MAX: Final = 1_000  # accepted; three for each other broker
PEER_HELLO_MAX_BYTES: Final = 4 * KiB  # of the first frame in either direction: an unknown peer must cost little
PEER_REQUEST_MAX_BYTES: Final = 16 * MiB  # of a frame on the peer port, unless socket.request.max.bytes allows more
PEER_CONTROL_UNSENT_MAX_BYTES: Final = 16 * MiB  # on a control lane; beyond it, the connection is closed
PEER_FETCH_UNSENT_MAX_BYTES: Final = 2 * FRAME_MAX_BYTES  # on the other lanes: an answer is a frame
PEER_CALLS_UNDER_WAY_MAX: Final = 1_000  # per control lane
RAFT_MESSAGES_PER_FRAME_MAX: Final = 1_000
RAFT_MESSAGES_GATHERED_MAX: Final = 100_000  # for one peer in one turn of the loop; more are dropped, and sent again
FETCH_NAMED_MAX: Final = 500  # partitions that a follower's fetch names, and that its answer contains
PARTITIONS_PER_TURN_MAX: Final = 200  # whose changes are processed before the loop runs other work
ELECTIONS_AT_ONCE_MAX: Final = 100  # of this broker's partitions
EARLY_MESSAGES_MAX: Final = 100_000  # for partitions that are not yet in this broker's metadata
HELD_MESSAGES_MAX: Final = 1_000  # for a partition whose log is being truncated, which a full disk may delay

# Record batches
BATCH_HEADER_BYTES: Final = 61
RECORD_BATCH_MAX_BYTES: Final = 90 * MiB
RECORDS_PER_BATCH_MAX: Final = 10_000_000
DECOMPRESSED_MAX_BYTES: Final = 256 * MiB
ADMITTED_OPEN_MAX_BYTES: Final = 16 * MiB  # decompressed, of a batch that is opened on the loop before its append
ADMITTED_OPEN_MAX_RECORDS: Final = 20_000  # of such a batch: each takes 1 to 2 µs on the loop
RECOMPRESSIONS_AT_ONCE_MAX: Final = 4  # of batches in another codec than their topic's; each takes a thread
RECOMPRESSED_MAX_BYTES: Final = 32 * MiB  # decompressed, of such a batch, unless the batch itself is larger
REJECTED_RECORDS_NAMED_MAX: Final = 50  # per rejected batch in a Produce response, with some 100 bytes each
DECODED_RUN_MAX_BYTES: Final = 64 * MiB  # of decompressed batches that the pipeline decodes at once; one may be larger

# The log
COMPACTION_SLICE_BYTES: Final = 4 * MiB  # that the cleaner is given at once
COMPACTION_TIMES_KEPT_MAX: Final = 64  # passes whose time is kept, for each log
SEGMENT_MAX_BYTES: Final = 2 * GiB - 1  # positions in the index have 32 bits
DESCRIPTORS_OPEN_MAX: Final = 512
PRODUCER_BATCHES_KEPT: Final = 5  # Kafka clients keep at most five requests in flight
PRODUCERS_PER_PARTITION_MAX: Final = 100_000

# Topics
TOPIC_NAME_MAX_CHARS: Final = 249
PARTITIONS_PER_TOPIC_MAX: Final = 10_000
PARTITIONS_PER_REQUEST_MAX: Final = 10_000
RESOURCES_PER_REQUEST_MAX: Final = 10_000  # of DescribeConfigs: with documentation, some 10 KiB each
PARTITIONS_PER_BROKER_MAX: Final = 100_000  # an empty partition takes some 4 KiB of memory

# Coordinators
COORDINATOR_LOG_CUT_MIN_RECORDS: Final = 100_000  # in a coordinator's partition; a shorter log loads within seconds
COORDINATOR_BATCH_MAX_RECORDS: Final = 1_000  # of the requests of one turn of the loop; one request may have more
ALARMS_PER_TURN_MAX: Final = 1_000  # handled at once, each may write a record: after a pause, all may be due

# Groups
GROUP_SUBSCRIPTIONS_MAX_BYTES: Final = 16 * MiB  # of all members of a group: a generation is one record
GROUP_PROTOCOLS_MAX: Final = 100  # assignment strategies that a member offers; clients have one to three
GROUP_PENDING_MEMBERS_MAX: Final = 10_000  # member ids per group that were given out, but have not joined yet
GROUP_REBALANCE_MIN_MS: Final = 100  # whatever members ask for; also between checks for absent static members
GROUP_SUBSCRIBED_NAMES_MAX: Final = 1_000_000  # topics that all members of a consumer group subscribe to
GROUP_OWNED_PARTITIONS_MAX: Final = 100_000  # that a member of a consumer group may report as owned
GROUP_EXPRESSIONS_MAX: Final = 100  # regular expressions of a group; each is matched against every new topic
GROUP_EXPRESSION_MAX_CHARS: Final = 1_000  # of a regular expression in a subscription
GROUP_EXPRESSION_MAX_STEPS: Final = 4_000  # of its compiled program: at worst, matching a name takes some 15 ms
GROUP_EXPRESSION_MAX_BYTES: Final = 1 * MiB  # of that program and its memory at run time; RE2 compiles no larger one

# Transactions
PARTITIONS_PER_TRANSACTION_MAX: Final = 100_000  # a transaction is one record
MARKS_PER_CALL_MAX: Final = 1_000  # markers that a coordinator sends to one broker at once; each has some 60 bytes

# Share groups
SHARE_STATES_PER_CALL_MAX: Final = 1_000  # share partitions whose state is written with one request between brokers
SHARE_STATE_BATCHES_PER_CALL_MAX: Final = 100_000  # in such a request, with 28 bytes each; one partition may have more

# The HTTP door
HTTP_HEAD_MAX_BYTES: Final = 16 * KiB  # of a request: its target and its headers
HTTP_HEADERS_MAX: Final = 100
HTTP_PARAMETERS_MAX: Final = 100  # of a query or a form
HTTP_BODY_MAX_BYTES: Final = 2 * MiB  # unless a route has a limit of its own; a message of 1 MiB fits as base64
HTTP_REQUESTS_MAX_BYTES: Final = 256 * MiB  # of all requests together, from the end of their head to their answer
HTTP_PIPELINED_MAX: Final = 64  # requests of a connection that wait for their turn; then reading pauses
HTTP_HEAD_MAX_S: Final = 10  # from the first byte of a request to the end of its head, and before the first request
HTTP_BODY_MAX_S: Final = 60  # from the end of the head to the end of the body
HTTP_IDLE_MAX_S: Final = 60  # between two requests
HTTP_UNREAD_MAX_S: Final = 60  # for which a client may read nothing of its answer
HTTP_UNREAD_MAX_BYTES: Final = 256 * MiB  # of answers to all clients that do not read; then the slowest are cut off
HTTP_UNSENT_MAX_BYTES: Final = 256 * KiB  # of answers in a connection's write buffer; beyond it, streams pause
HEALTH_KEPT_MAX: Final = 100_000  # last-seen times that a view has; those that were written first are dropped
HEALTH_WRITTEN_MAX: Final = 10_000  # last-seen times that a door writes at once; others are written later
HTTP_REGISTRATIONS_KEPT_MAX: Final = 10_000  # producers and consumers that a door need not look up again
HTTP_LINGER_MAX_S: Final = 2  # from when the last answer was sent until the connection is closed

assert DMQP_PAYLOAD_MAX_BYTES < DMQP_IN_FLIGHT_MAX_BYTES < DMQP_PAYLOADS_HELD_MAX_BYTES
assert GRPC_RESPONSE_RECORDS_MAX_BYTES <= GRPC_FETCH_MAX_BYTES < GRPC_MESSAGE_MAX_BYTES < GRPC_HELD_MAX_BYTES
assert GRPC_CONSUMERS_MAX < GRPC_CALLS_MAX
# The REST API: parsing and writing JSON takes time on the loop, some 10 ms a MiB
REST_BODY_MAX_BYTES: Final = 64 * KiB
REST_PRODUCE_MAX_BYTES: Final = 2 * MiB  # a message of 1 MiB as base64 fits
REST_RECORDS_MAX: Final = 1_000  # of one request or answer
REST_HEADERS_MAX: Final = 1_000  # of one record
REST_JSON_MAX_DEPTH: Final = 64  # of a JSON value in a record
REST_WAIT_MAX_MS: Final = 60_000  # of a long poll
REST_READ_MAX_BYTES: Final = 4 * MiB  # of one partition in one answer
REST_STREAMS_MAX: Final = 1_000  # live tails, group streams and long polls of a door
REST_TAIL_PARTITIONS_MAX: Final = 500  # of one stream: the id of an event, a header later, has some 15 bytes for each
REST_OFFSETS_MAX: Final = 1_000  # that one request commits or resets
REST_PAGE_MAX: Final = 1_000  # topics, groups or queues in one answer
REST_TAKE_MAX: Final = 100  # messages of a queue that one request takes
REST_IDEMPOTENCY_KEY_MAX_CHARS: Final = 255
REST_ONCE_MAX: Final = 100  # requests with idempotency keys that a door serves at the same time
REST_LOCKS_MAX: Final = 20_000  # messages of all queues that clients of a door have taken and not settled

assert RECORD_BATCH_MAX_BYTES < FRAME_MAX_BYTES
assert ADMITTED_OPEN_MAX_BYTES < RECOMPRESSED_MAX_BYTES < DECOMPRESSED_MAX_BYTES
assert 2 * GiB > DECODED_RUN_MAX_BYTES + DECOMPRESSED_MAX_BYTES + FRAME_MAX_BYTES  # positions in a run have 32 bits
assert PARTITIONS_PER_TRANSACTION_MAX * (TOPIC_NAME_MAX_CHARS + 8) < RECORD_BATCH_MAX_BYTES
assert GROUP_SUBSCRIPTIONS_MAX_BYTES + SMALL_REQUEST_MAX_BYTES < RECORD_BATCH_MAX_BYTES
assert SHARE_STATE_BATCHES_PER_CALL_MAX * 28 < PEER_REQUEST_MAX_BYTES / 2
assert FETCH_ANSWER_MAX_BYTES < FRAME_MAX_BYTES
assert FETCH_ANSWER_SCARCE_BYTES < FETCH_ANSWER_MAX_BYTES < ANSWERS_UNSENT_MAX_BYTES
assert 4 * FAULT_TEXT_MAX_CHARS < CLIENT_TEXT_MAX_BYTES
assert PARTITIONS_PER_REQUEST_MAX * REJECTED_RECORDS_NAMED_MAX * 100 < FRAME_MAX_BYTES
assert SMALL_REQUEST_MAX_BYTES < FRAME_MAX_BYTES
assert FRAME_READ_BYTES < FRAME_MAX_BYTES
assert RAFT_MESSAGES_PER_FRAME_MAX * 128 < PEER_REQUEST_MAX_BYTES  # only an EndEpoch with dozens of voters is larger
assert SMALL_REQUEST_MAX_BYTES < PEER_REQUEST_MAX_BYTES < FRAME_MAX_BYTES
