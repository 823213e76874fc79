"""Every bound of the broker, with its unit last. Relations between them are asserted here."""

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB

# The wire
frame_max_bytes = 100 * MiB
frame_read_bytes = 256 * KiB  # what one read from a socket may bring, when no larger frame is under way
array_max_elements = 1_000_000
tagged_fields_max = 10_000
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
answers_unsent_max_bytes = 512 * MiB
encoded_topics_kept_max_bytes = 64 * MiB  # of Metadata's answer, in all versions asked for

# Record batches
batch_header_bytes = 61
record_batch_max_bytes = 90 * MiB
records_per_batch_max = 10_000_000
decompressed_max_bytes = 256 * MiB

# The log
segment_max_bytes = 2 * GiB - 1  # positions in the index are 32 bits
descriptors_open_max = 512
producer_batches_kept = 5  # Kafka clients keep at most five requests in flight
producers_per_partition_max = 100_000

# Topics
topic_name_max_chars = 249
partitions_per_topic_max = 10_000
partitions_per_request_max = 10_000
partitions_per_broker_max = 100_000  # one takes some 4 KiB of memory before its first record

assert record_batch_max_bytes < frame_max_bytes
assert fetch_answer_max_bytes < frame_max_bytes
assert fetch_answer_scarce_bytes < fetch_answer_max_bytes < answers_unsent_max_bytes
assert 4 * fault_text_max_chars < client_text_max_bytes
assert small_request_max_bytes < frame_max_bytes
assert frame_read_bytes < frame_max_bytes
