import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.SubscriptionPattern;

/** A member of a group: BOOTSTRAP TOPIC GROUP STRATEGY INSTANCE. Says what it has and what it reads; leaves at SIGTERM. */
public final class Member {
    private static final Map<String, Class<?>> assignors = Map.of(
        "range", RangeAssignor.class,
        "roundrobin", RoundRobinAssignor.class,
        "cooperative-sticky", CooperativeStickyAssignor.class);
    private static volatile boolean over = false;

    public static void main(String[] arguments) throws Exception {
        var left = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            over = true;
            try {
                left.await();
            } catch (InterruptedException gone) {
                Thread.currentThread().interrupt();
            }
        }));
        try (var consumer = new KafkaConsumer<byte[], byte[]>(settings(arguments))) {
            if (arguments[1].startsWith("^")) {
                consumer.subscribe(new SubscriptionPattern(arguments[1]));
            } else {
                consumer.subscribe(List.of(arguments[1]));
            }
            read(consumer);
        } finally {
            left.countDown();
        }
    }

    private static void read(KafkaConsumer<byte[], byte[]> consumer) {
        String had = null;
        while (!over) {
            for (var record : consumer.poll(Duration.ofMillis(50))) {
                System.out.println("got " + record.partition() + " " + record.offset());
            }
            String has = consumer.assignment().stream().map(one -> one.partition()).sorted()
                .map(String::valueOf).collect(Collectors.joining(" "));
            if (!has.equals(had)) {
                had = has;
                System.out.println("assigned " + has);
            }
        }
    }

    private static Map<String, Object> settings(String[] arguments) {
        Map<String, Object> settings = Settings.consumer(arguments[0]);
        settings.put("group.id", arguments[2]);
        settings.put("enable.auto.commit", true);
        settings.put("auto.commit.interval.ms", 100);
        settings.put("auto.offset.reset", "earliest");
        if (!arguments[4].isEmpty()) {
            settings.put("group.instance.id", arguments[4]);
        }
        if (arguments[3].equals("consumer")) {
            settings.put("group.protocol", "consumer");
        } else {
            settings.put("partition.assignment.strategy", assignors.get(arguments[3]).getName());
            settings.put("session.timeout.ms", 6000);
            settings.put("heartbeat.interval.ms", 300);
        }
        return settings;
    }
}
