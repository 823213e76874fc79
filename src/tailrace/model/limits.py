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

# Connections
requests_in_flight_max = 1_000  # per connection: answers that wait, in request order
fetch_sessions_max = 1_000
fetch_answer_max_bytes = 55 * MiB
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

assert record_batch_max_bytes < frame_max_bytes
assert fetch_answer_max_bytes < frame_max_bytes
assert frame_read_bytes < frame_max_bytes
