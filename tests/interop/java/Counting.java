import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Counts words, exactly once: BOOTSTRAP APPLICATION INPUT OUTPUT STATE_FOLDER. A word moves through a repartition topic
 * to who counts it, the counts are kept in a store and its changelog, and each count goes to the output.
 */
public final class Counting {
    public static void main(String[] arguments) {
        var streams = new KafkaStreams(topology(arguments[2], arguments[3]), settings(arguments));
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(10))));
        streams.start();
    }

    private static Topology topology(String input, String output) {
        var builder = new StreamsBuilder();
        var text = Serdes.String();
        builder.stream(input, Consumed.with(text, text))
            .peek((key, word) -> Work.one())
            .groupBy((key, word) -> word, Grouped.with("words", text, text))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"))
            .toStream()
            .mapValues(String::valueOf)
            .to(output, Produced.with(text, text));
        return builder.build();
    }

    private static Properties settings(String[] arguments) {
        var settings = new Properties();
        settings.putAll(Settings.shared(arguments[0]));
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0); // every count goes out, none is skipped
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
        settings.put("producer.transaction.timeout.ms", 5000);
        settings.put("consumer.session.timeout.ms", 6000);
        settings.put("consumer.heartbeat.interval.ms", 500);
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("consumer.max.poll.records", 50);
        return settings;
    }
}
