import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Transactional producers, which stay open between calls, under a number; and what an administrator sees of them. */
final class Transactions {
    private final Admin admin;
    private final String bootstrap;
    private final Map<Integer, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private int last = 0;

    Transactions(Admin admin, String bootstrap) {
        this.admin = admin;
        this.bootstrap = bootstrap;
    }

    void offer(Map<String, Call> calls) {
        calls.put("open_transactor", this::open);
        calls.put("begin", this::begin);
        calls.put("write", this::write);
        calls.put("commit_offsets", this::commitOffsets);
        calls.put("commit_transaction", this::commit);
        calls.put("abort_transaction", this::abort);
        calls.put("close_transactor", this::close);
        calls.put("describe_transaction", this::describe);
        calls.put("list_transactions", this::list);
        calls.put("fence", asked -> admin.fenceProducers(List.of(asked.get("id").asText())).all().get());
        calls.put("open_on", this::openOn);
    }

    private Integer open(JsonNode asked) {
        Map<String, Object> settings = Settings.producer(bootstrap);
        settings.put("transactional.id", asked.get("id").asText());
        settings.put("transaction.timeout.ms", asked.get("timeout_ms").asInt());
        var producer = new KafkaProducer<byte[], byte[]>(settings);
        producers.put(++last, producer);
        producer.initTransactions();
        return last;
    }

    private KafkaProducer<byte[], byte[]> of(JsonNode asked) {
        return producers.get(asked.get("transactor").asInt());
    }

    private Object begin(JsonNode asked) {
        of(asked).beginTransaction();
        return null;
    }

    private Object write(JsonNode asked) throws Exception {
        for (JsonNode value : asked.get("values")) {
            var record = new ProducerRecord<byte[], byte[]>(
                asked.get("topic").asText(), asked.get("partition").asInt(), null, value.binaryValue());
            of(asked).send(record).get();
        }
        return null;
    }

    private Object commitOffsets(JsonNode asked) {
        var group = new ConsumerGroupMetadata(asked.get("group").asText());
        of(asked).sendOffsetsToTransaction(Groups.offsets(asked), group);
        return null;
    }

    private Object commit(JsonNode asked) {
        of(asked).commitTransaction();
        return null;
    }

    private Object abort(JsonNode asked) {
        of(asked).abortTransaction();
        return null;
    }

    private Object close(JsonNode asked) {
        of(asked).close(Duration.ZERO);
        return null;
    }

    private Map<String, Object> describe(JsonNode asked) throws Exception {
        String id = asked.get("id").asText();
        var found = admin.describeTransactions(List.of(id)).all().get().get(id);
        return Map.of(
            "state", found.state().toString(),
            "producer_id", found.producerId(),
            "producer_epoch", found.producerEpoch(),
            "timeout_ms", found.transactionTimeoutMs(),
            "partitions", found.topicPartitions().stream().map(one -> List.of(one.topic(), one.partition())).toList());
    }

    private Map<String, String> list(JsonNode asked) throws Exception {
        Map<String, String> states = new HashMap<>();
        admin.listTransactions().all().get().forEach(one -> states.put(one.transactionalId(), one.state().toString()));
        return states;
    }

    /** The producers that have a transaction open on a partition, and where each began. */
    private Map<Long, Long> openOn(JsonNode asked) throws Exception {
        var where = Reading.partition(asked);
        Map<Long, Long> open = new HashMap<>();
        for (var one : admin.describeProducers(List.of(where)).partitionResult(where).get().activeProducers()) {
            one.currentTransactionStartOffset().ifPresent(start -> open.put(one.producerId(), start));
        }
        return open;
    }
}
