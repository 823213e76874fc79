import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;

/** Partitions are read without a group, from any offset. A reader stays open between calls, under a number. */
final class Reading {
    private static final Duration step = Duration.ofMillis(50);
    private static final long deadlineMs = 15_000;
    private static final int end = -1;

    private final String bootstrap;
    private final Map<Integer, Reader> readers = new HashMap<>();
    private int last = 0;

    private record Reader(KafkaConsumer<byte[], byte[]> consumer, Queue<ConsumerRecord<byte[], byte[]>> waiting) {}

    Reading(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void offer(Map<String, Call> calls) {
        calls.put("open", this::open);
        calls.put("take", this::take);
        calls.put("close", this::close);
        calls.put("near", this::near);
        calls.put("offset_at", this::offsetAt);
        calls.put("watermarks", this::watermarks);
    }

    private Integer open(JsonNode asked) {
        Map<String, Object> settings = Settings.consumer(bootstrap);
        settings.put("fetch.max.wait.ms", asked.get("wait_ms").asInt());
        settings.put("auto.offset.reset", asked.get("reset").asText());
        settings.put("isolation.level", asked.get("committed_only").asBoolean() ? "read_committed" : "read_uncommitted");
        settings.put("client.rack", asked.path("rack").asText(""));
        if (!asked.get("fetch_bytes").isNull()) {
            settings.put("max.partition.fetch.bytes", asked.get("fetch_bytes").asInt());
            settings.put("fetch.max.bytes", asked.get("fetch_bytes").asInt());
        }
        var consumer = new KafkaConsumer<byte[], byte[]>(settings);
        var where = partition(asked);
        consumer.assign(List.of(where));
        if (asked.get("start").asLong() == end) {
            consumer.seekToEnd(List.of(where));
            consumer.position(where);
        } else {
            consumer.seek(where, asked.get("start").asLong());
        }
        readers.put(++last, new Reader(consumer, new ArrayDeque<>()));
        return last;
    }

    private List<Map<String, Object>> take(JsonNode asked) {
        Reader reader = readers.get(asked.get("reader").asInt());
        int count = asked.get("count").asInt();
        long until = System.currentTimeMillis() + deadlineMs;
        while (reader.waiting.size() < count) {
            if (System.currentTimeMillis() > until) {
                throw new IllegalStateException(reader.waiting.size() + " of " + count + " records in time");
            }
            try {
                reader.consumer.poll(step).forEach(reader.waiting::add);
            } catch (OffsetOutOfRangeException lost) { // a class of the consumer's own, without the protocol's code
                throw Errors.OFFSET_OUT_OF_RANGE.exception(lost.getMessage());
            }
        }
        List<Map<String, Object>> taken = new ArrayList<>();
        while (taken.size() < count) {
            taken.add(told(reader.waiting.remove()));
        }
        return taken;
    }

    private Boolean close(JsonNode asked) {
        var soon = CloseOptions.timeout(Duration.ofMillis(100)); // it would wait for a fetch that waits
        readers.remove(asked.get("reader").asInt()).consumer.close(soon);
        return true;
    }

    /** Which replica the client was sent to; -1: it reads from the leader. */
    private Long near(JsonNode asked) {
        for (var metric : readers.get(asked.get("reader").asInt()).consumer.metrics().values()) {
            if (metric.metricName().name().equals("preferred-read-replica")) {
                return ((Number) metric.metricValue()).longValue();
            }
        }
        return -1L;
    }

    private Long offsetAt(JsonNode asked) {
        var where = partition(asked);
        try (var consumer = new KafkaConsumer<byte[], byte[]>(Settings.consumer(bootstrap))) {
            var found = consumer.offsetsForTimes(Map.of(where, asked.get("timestamp_ms").asLong())).get(where);
            return found == null ? -1 : found.offset();
        }
    }

    private List<Long> watermarks(JsonNode asked) {
        var where = Set.of(partition(asked));
        try (var consumer = new KafkaConsumer<byte[], byte[]>(Settings.consumer(bootstrap))) {
            return List.of(
                consumer.beginningOffsets(where).values().iterator().next(),
                consumer.endOffsets(where).values().iterator().next());
        }
    }

    static TopicPartition partition(JsonNode asked) {
        return new TopicPartition(asked.get("topic").asText(), asked.get("partition").asInt());
    }

    private static Map<String, Object> told(ConsumerRecord<byte[], byte[]> record) {
        List<List<Object>> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            List<Object> pair = new ArrayList<>(List.of(header.key()));
            pair.add(header.value());
            headers.add(pair);
        }
        Map<String, Object> told = new HashMap<>();
        told.put("offset", record.offset());
        told.put("key", record.key());
        told.put("value", record.value());
        told.put("headers", headers);
        told.put("timestamp_ms", record.timestamp());
        told.put("append_time", record.timestampType() == TimestampType.LOG_APPEND_TIME);
        return told;
    }
}
