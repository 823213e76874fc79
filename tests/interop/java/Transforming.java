import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/**
 * Consume, transform, produce, exactly once: BOOTSTRAP GROUP INPUT OUTPUT PROTOCOL WORKER. What was read as a member of the
 * group goes to the output in the transaction that moves the group's offsets. Runs until it is killed.
 */
public final class Transforming {
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final KafkaProducer<byte[], byte[]> producer;
    private final String output;

    private Transforming(String[] arguments) {
        Map<String, Object> reading = Settings.consumer(arguments[0]);
        reading.put("group.id", arguments[1]);
        reading.put("isolation.level", "read_committed");
        reading.put("auto.offset.reset", "earliest");
        reading.put("max.poll.records", 20);
        if (arguments[4].equals("consumer")) {
            reading.put("group.protocol", "consumer");
        } else {
            reading.put("partition.assignment.strategy", CooperativeStickyAssignor.class.getName());
            reading.put("session.timeout.ms", 6000);
            reading.put("heartbeat.interval.ms", 300);
        }
        Map<String, Object> writing = Settings.producer(arguments[0]);
        writing.put("transactional.id", arguments[1] + "-" + arguments[5]);
        writing.put("transaction.timeout.ms", 5000);
        consumer = new KafkaConsumer<>(reading);
        producer = new KafkaProducer<>(writing);
        output = arguments[3];
        producer.initTransactions();
        consumer.subscribe(List.of(arguments[2]));
    }

    public static void main(String[] arguments) {
        var worker = new Transforming(arguments);
        while (true) {
            ConsumerRecords<byte[], byte[]> records = worker.consumer.poll(Duration.ofMillis(100));
            if (!records.isEmpty()) {
                worker.transform(records);
            }
        }
    }

    private void transform(ConsumerRecords<byte[], byte[]> records) {
        try {
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
            for (var record : records) {
                Work.one();
                producer.send(new ProducerRecord<>(output, record.partition(), record.key(), record.value()));
                next.put(
                    new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
            producer.commitTransaction();
            System.out.println("committed " + records.count());
        } catch (ProducerFencedException | InvalidProducerEpochException fenced) {
            throw fenced;
        } catch (KafkaException refused) { // a rebalance, or a coordinator that moved: read again what was not committed
            producer.abortTransaction();
            consumer.assignment().forEach(this::rewind);
        }
    }

    private void rewind(TopicPartition partition) {
        var committed = consumer.committed(Set.of(partition)).get(partition);
        if (committed == null) {
            consumer.seekToBeginning(List.of(partition));
        } else {
            consumer.seek(partition, committed.offset());
        }
    }
}
