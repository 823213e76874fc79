"""Every bound of the broker, with its unit last. Relations between them are asserted here."""

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB

# The wire
frame_max_bytes = 100 * MiB
names_per_request_max = 50_000  # partitions, groups or ids that one request asks about: each costs the loop time
names_per_turn_max = 500  # of those, before the loop looks at its other work
request_elements_max = 20_000  # in all arrays of a request together, but for plain numbers
request_elements_by_name_max = 2 * names_per_request_max  # of one that asks about partitions, each a struct in a topic
frame_read_bytes = 256 * KiB  # what one read from a socket may bring, when no larger frame is under way
array_max_elements = 1_000_000
elements_max = 10 * array_max_elements  # in all arrays of what others than clients have written
alike_max_bytes = 1 * KiB  # of a Produce before its batch: so much is kept per connection, for the next of its kind
tagged_fields_max = 32  # of a struct: Kafka has a handful at most
client_text_max_bytes = 32 * KiB - 1  # a non-flexible string's length is an int16
small_request_max_bytes = 4 * MiB  # of any request that carries no records; decoding one takes the loop's time
fault_text_max_chars = 1_000  # of what we say about a fault: it may repeat a client's text, and must fit an answer

# Connections
requests_in_flight_max = 1_000  # per connection: answers that wait, in request order
fetch_sessions_max = 1_000
fetch_session_partitions_max = 100_000  # in all sessions together
fetch_session_kept_s = 120  # a session used within this time does not make room for another
fetch_wait_max_ms = 300_000  # a client that is gone may not be noticed before its Fetch is answered
fetch_answer_max_bytes = 55 * MiB
fetch_answer_scarce_bytes = 64 * KiB  # while more than `answers_unsent_max_bytes` wait for clients that do not read
read_ahead_max_bytes = 16 * MiB  # in all pieces that are ready for consumers which catch up
read_ahead_min_bytes = 64 * KiB  # who asks for less gets nothing ready: it would gain nothing
read_ahead_per_answer_max = 4  # pieces, of as many partitions: each takes the loop a fifth of a millisecond
read_ahead_kept_s = 1  # a piece that nobody has asked for by then is forgotten
answers_unsent_max_bytes = 512 * MiB
encoded_topics_kept_max_bytes = 64 * MiB  # of Metadata's answer, in all versions asked for

# Peers
peer_connections_max = 1_000  # accepted; three for each other broker
peer_hello_max_bytes = 4 * KiB  # of either side's first frame: who is not known yet costs little
peer_request_max_bytes = 16 * MiB  # of a frame on the peers' port, unless socket.request.max.bytes allows more
peer_control_unsent_max_bytes = 16 * MiB  # on a control lane whose other end does not read: it is dropped
peer_fetch_unsent_max_bytes = 2 * frame_max_bytes  # on the other lanes: an answer is a frame, and one is under way
peer_calls_under_way_max = 1_000  # per control lane
raft_messages_per_frame_max = 1_000
raft_messages_gathered_max = 100_000  # for one peer in one turn of the loop; what is beyond is dropped, and repeated
fetch_named_max = 500  # partitions that a follower's fetch names, and that its answer brings
partitions_per_turn_max = 200  # whose news are taken in before the loop looks at its other work
elections_at_once_max = 100  # of this broker's partitions
early_messages_max = 100_000  # for partitions that this broker does not know yet: its metadata is on its way
held_messages_max = 1_000  # for a partition whose log is being cut, which a full disk can make long

# Record batches
batch_header_bytes = 61
record_batch_max_bytes = 90 * MiB
records_per_batch_max = 10_000_000
decompressed_max_bytes = 256 * MiB
admitted_open_max_bytes = 16 * MiB  # decompressed, of a batch that is opened on the loop before it is appended
admitted_open_max_records = 20_000  # of such a batch: each takes the loop one microsecond or two
decoded_run_max_bytes = 64 * MiB  # of decompressed batches that the pipeline decodes at once; one alone may be larger

# The log
segment_max_bytes = 2 * GiB - 1  # positions in the index are 32 bits
descriptors_open_max = 512
producer_batches_kept = 5  # Kafka clients keep at most five requests in flight
producers_per_partition_max = 100_000

# Topics
topic_name_max_chars = 249
partitions_per_topic_max = 10_000
partitions_per_request_max = 10_000
resources_per_request_max = 10_000  # whose settings one request asks for: with what they mean, some 10 KiB each
partitions_per_broker_max = 100_000  # one takes some 4 KiB of memory before its first record

# Coordinators
coordinator_log_cut_min_records = 100_000  # of a partition that one reads: a shorter one is read in seconds
alarms_per_turn_max = 1_000  # that ring at once, each of which may write something: after a pause, all may be due

# Groups
group_subscriptions_max_bytes = 16 * MiB  # of all members of a group: its generation is one record
group_protocols_max = 100  # of a member, by which work can be shared with it; clients have one to three
group_pending_members_max = 10_000  # ids given out to clients that have not come back yet, per group
group_rebalance_min_ms = 100  # whatever members say: who waits for static ones that are away looks again after it
group_subscribed_names_max = 1_000_000  # that all members of a consumer group name
group_owned_partitions_max = 100_000  # that a member of a consumer group may say it has
group_expressions_max = 100  # regular expressions of a group, each of which is tried on every new topic
group_expression_max_chars = 1_000  # of a regular expression that a member subscribes by
group_expression_max_steps = 4_000  # of the program that it is compiled to: at worst, a name takes some 15 ms
group_expression_max_bytes = 1 * MiB  # of that program and what it keeps while it runs; RE2 compiles no larger one

# Transactions
partitions_per_transaction_max = 100_000  # a transaction is one record
marks_per_call_max = 1_000  # that a coordinator sends to one broker at once; a mark has some 60 bytes

assert record_batch_max_bytes < frame_max_bytes
assert admitted_open_max_bytes < decompressed_max_bytes
assert decoded_run_max_bytes + decompressed_max_bytes + frame_max_bytes < 2 * GiB  # places in a run have 32 bits
assert partitions_per_transaction_max * (topic_name_max_chars + 8) < record_batch_max_bytes
assert group_subscriptions_max_bytes + small_request_max_bytes < record_batch_max_bytes
assert fetch_answer_max_bytes < frame_max_bytes
assert fetch_answer_scarce_bytes < fetch_answer_max_bytes < answers_unsent_max_bytes
assert 4 * fault_text_max_chars < client_text_max_bytes
assert small_request_max_bytes < frame_max_bytes
assert frame_read_bytes < frame_max_bytes
assert raft_messages_per_frame_max * 128 < peer_request_max_bytes  # no message has more, but for EndEpoch to dozens
assert small_request_max_bytes < peer_request_max_bytes < frame_max_bytes
