import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.protocol.Errors;

/** A member of a share group: BOOTSTRAP TOPIC GROUP MODE. It takes calls, as Calls does. */
public final class ShareMember {
    private final KafkaShareConsumer<byte[], byte[]> consumer;
    private final List<Integer> told = new ArrayList<>();
    private final Map<List<Long>, ConsumerRecord<byte[], byte[]>> held = new HashMap<>(); // by partition and offset

    public static void main(String[] arguments) throws Exception {
        Map<String, Call> calls = new HashMap<>();
        new ShareMember(arguments).offer(calls);
        Calls.serve(calls);
    }

    private ShareMember(String[] arguments) {
        consumer = new KafkaShareConsumer<>(settings(arguments));
        consumer.setAcknowledgementCommitCallback((offsets, failure) ->
            told.add(failure == null ? 0 : (int) Errors.forException(failure).code()));
        consumer.subscribe(List.of(arguments[1]));
    }

    private static Map<String, Object> settings(String[] arguments) {
        Map<String, Object> settings = Settings.consumer(arguments[0]);
        settings.remove("enable.auto.commit");
        settings.put("group.id", arguments[2]);
        settings.put("metadata.max.age.ms", 500);
        settings.put("allow.auto.create.topics", false);
        settings.put("share.acknowledgement.mode", arguments[3].equals("implicit") ? "implicit" : "explicit");
        if (arguments[3].equals("single")) {
            settings.put("share.acquire.mode", "record_limit");
            settings.put("max.poll.records", 1);
        }
        return settings;
    }

    private void offer(Map<String, Call> calls) {
        calls.put("poll", asked -> poll(asked.get("wait_ms").asInt()));
        calls.put("acknowledge", this::acknowledge);
        calls.put("renew", this::renew);
        calls.put("commit", asked -> commit());
        calls.put("commit_later", asked -> {
            consumer.commitAsync();
            return null;
        });
        calls.put("told", asked -> {
            consumer.commitAsync(); // what it was told comes with the next call
            return told;
        });
        calls.put("leave", asked -> {
            consumer.close();
            return null;
        });
    }

    private List<List<Object>> poll(int waitMs) {
        List<List<Object>> found = new ArrayList<>();
        held.clear();
        for (var one : consumer.poll(Duration.ofMillis(waitMs))) {
            held.put(List.of((long) one.partition(), one.offset()), one);
            String value = new String(one.value(), StandardCharsets.UTF_8);
            found.add(List.of(one.partition(), one.offset(), one.deliveryCount().orElse((short) 0), value));
        }
        return found;
    }

    private Object acknowledge(JsonNode asked) {
        var outcome = AcknowledgeType.valueOf(asked.get("outcome").asText().toUpperCase(Locale.ROOT));
        consumer.acknowledge(held.get(List.of(asked.get("partition").asLong(), asked.get("offset").asLong())), outcome);
        return null;
    }

    /** Records whose locks were renewed are returned by the next poll. */
    private Object renew(JsonNode asked) {
        for (JsonNode one : asked.get("records")) {
            consumer.acknowledge(held.get(List.of(one.get(0).asLong(), one.get(1).asLong())), AcknowledgeType.RENEW);
        }
        commit();
        return poll(1000);
    }

    private Object commit() {
        for (var failure : consumer.commitSync().values()) {
            failure.ifPresent(refused -> {
                throw refused;
            });
        }
        return null;
    }
}
