import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * Keeps a table of totals in a store with a changelog: GUARANTEE REPLICATION STATE_FOLDER APPLICATION INPUT BOOTSTRAP
 * The value of a key is how many messages it had, and the last of them; the message `forget` deletes it. The variable
 * INTEROP_PROPERTIES names a file with the settings of the changelog topic, with the prefix `topic.`.
 */
public final class Totals {
    private static final String store = "totals";
    private static final String forget = "forget";
    private static final AtomicLong restored = new AtomicLong();

    public static void main(String[] arguments) throws Exception {
        try (var streams = new KafkaStreams(topology(arguments[4]), settings(arguments))) {
            streams.setGlobalStateRestoreListener(new Restored());
            streams.start();
            Calls.serve(Map.of(
                "state", asked -> streams.state().toString(),
                "restored", asked -> restored.get(),
                "contents", asked -> contents(streams)));
        }
    }

    private static Topology topology(String input) {
        var builder = new StreamsBuilder();
        var text = Serdes.String();
        builder.stream(input, Consumed.with(text, text))
            .groupByKey()
            .aggregate(
                () -> "0",
                (key, message, total) -> message.equals(forget) ? null : next(total) + ":" + message,
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(store)
                    .withKeySerde(text)
                    .withValueSerde(text));
        return builder.build();
    }

    private static long next(String total) {
        return Long.parseLong(total.split(":", 2)[0]) + 1;
    }

    private static Map<String, String> contents(KafkaStreams streams) {
        var all = streams.store(StoreQueryParameters.fromNameAndType(
            store, QueryableStoreTypes.<String, String>keyValueStore()));
        Map<String, String> contents = new HashMap<>();
        try (var entries = all.all()) {
            entries.forEachRemaining(entry -> contents.put(entry.key, entry.value));
        }
        return contents;
    }

    private static Properties settings(String[] arguments) {
        var settings = new Properties();
        settings.putAll(Settings.shared(arguments[5]));
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, arguments[0]);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, arguments[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[2]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[3]);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0); // every change goes to the changelog
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
        settings.put("producer.transaction.timeout.ms", 5000);
        settings.put("consumer.session.timeout.ms", 6000);
        settings.put("consumer.heartbeat.interval.ms", 500);
        settings.put("consumer.auto.offset.reset", "earliest");
        return settings;
    }

    /** Counts the records of the changelog that came back. */
    private static final class Restored implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long from, long to) {}

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long offset, long count) {}

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long total) {
            restored.addAndGet(total);
        }
    }
}
