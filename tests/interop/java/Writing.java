import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** Messages go in, with any of a producer's settings. */
record Writing(String bootstrap) {
    void offer(Map<String, Call> calls) {
        calls.put("produce", this::produce);
    }

    private List<Long> produce(JsonNode asked) throws Exception {
        Map<String, Object> settings = Settings.producer(bootstrap);
        settings.put("compression.type", asked.get("compression").asText());
        settings.put("acks", asked.get("acks").asText());
        settings.put("enable.idempotence", asked.get("idempotent").asBoolean());
        if (!asked.get("max_bytes").isNull()) {
            settings.put("max.request.size", asked.get("max_bytes").asInt());
        }
        List<Long> offsets = new ArrayList<>();
        try (var producer = new KafkaProducer<byte[], byte[]>(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode message : asked.get("messages")) {
                sent.add(producer.send(record(asked, message)));
            }
            for (Future<RecordMetadata> one : sent) {
                RecordMetadata stored = one.get();
                if (stored.hasOffset()) {
                    offsets.add(stored.offset());
                }
            }
        }
        return offsets;
    }

    private static ProducerRecord<byte[], byte[]> record(JsonNode asked, JsonNode message) throws Exception {
        JsonNode time = message.get("timestamp_ms");
        var record = new ProducerRecord<byte[], byte[]>(
            asked.get("topic").asText(),
            asked.get("partition").asInt(),
            time.isNull() ? null : time.asLong(),
            message.get("key").binaryValue(),
            message.get("value").binaryValue());
        for (JsonNode header : message.get("headers")) {
            record.headers().add(header.get(0).asText(), header.get(1).binaryValue());
        }
        return record;
    }
}
