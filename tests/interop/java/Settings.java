import java.io.FileReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What every client of these programs is told. Waits are short: brokers are near. The variable INTEROP_PROPERTIES names
 * a file with further settings, such as those of TLS.
 */
final class Settings {
    private Settings() {}

    private static Properties further() {
        var found = new Properties();
        String path = System.getenv("INTEROP_PROPERTIES");
        if (path != null) {
            try (var file = new FileReader(path)) {
                found.load(file);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }
        return found;
    }

    static Map<String, Object> shared(String bootstrap) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "interop-java");
        settings.put("retry.backoff.ms", 10);
        settings.put("retry.backoff.max.ms", 200);
        settings.put("reconnect.backoff.ms", 10);
        settings.put("reconnect.backoff.max.ms", 200);
        further().forEach((name, value) -> settings.put((String) name, value));
        return settings;
    }

    static Map<String, Object> producer(String bootstrap) {
        Map<String, Object> settings = shared(bootstrap);
        settings.put("key.serializer", ByteArraySerializer.class);
        settings.put("value.serializer", ByteArraySerializer.class);
        settings.put("linger.ms", 5);
        settings.put("max.block.ms", 15_000);
        settings.put("request.timeout.ms", 10_000);
        settings.put("delivery.timeout.ms", 15_000);
        return settings;
    }

    static Map<String, Object> consumer(String bootstrap) {
        Map<String, Object> settings = shared(bootstrap);
        settings.put("key.deserializer", ByteArrayDeserializer.class);
        settings.put("value.deserializer", ByteArrayDeserializer.class);
        settings.put("enable.auto.commit", false);
        return settings;
    }
}
