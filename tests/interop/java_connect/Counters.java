import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * A source connector for Kafka Connect: `counters` of them count from 1 up to `limit`, and each number goes to `topic`,
 * with its counter as key. A counter is a source partition, and the last number is its offset.
 */
public final class Counters extends SourceConnector {
    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> settings) {
        this.settings = settings;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Counting.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int atMost) {
        return List.of(settings);
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        var high = ConfigDef.Importance.HIGH;
        return new ConfigDef()
            .define("topic", ConfigDef.Type.STRING, high, "Where numbers go.")
            .define("counters", ConfigDef.Type.INT, high, "How many counters there are.")
            .define("limit", ConfigDef.Type.LONG, high, "The last number of each.");
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> settings) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    /** Offsets may be altered and reset from outside. */
    @Override
    public boolean alterOffsets(Map<String, String> settings, Map<Map<String, ?>, Map<String, ?>> offsets) {
        return true;
    }

    @Override
    public String version() {
        return "1";
    }

    public static final class Counting extends SourceTask {
        private static final long pauseMs = 20;
        private final Map<String, Long> last = new TreeMap<>();
        private String topic;
        private long limit;

        @Override
        public void start(Map<String, String> settings) {
            topic = settings.get("topic");
            limit = Long.parseLong(settings.get("limit"));
            for (int number = 0; number < Integer.parseInt(settings.get("counters")); number++) {
                String counter = "counter-" + number;
                Map<String, Object> known = context.offsetStorageReader().offset(Map.of("counter", counter));
                last.put(counter, known == null ? 0 : (Long) known.get("last"));
            }
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(pauseMs);
            List<SourceRecord> records = new ArrayList<>();
            last.replaceAll((counter, number) -> {
                if (number < limit) {
                    records.add(record(counter, ++number));
                }
                return number;
            });
            return records.isEmpty() ? null : records;
        }

        private SourceRecord record(String counter, Long number) {
            return new SourceRecord(
                Map.of("counter", counter), Map.of("last", number), topic, Schema.STRING_SCHEMA, counter,
                Schema.STRING_SCHEMA, number.toString());
        }

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "1";
        }
    }
}
