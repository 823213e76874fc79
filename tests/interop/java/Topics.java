import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.Uuid;

/** Topics, partitions and offsets as an administrator sees and changes them. */
record Topics(Admin admin) {
    void offer(Map<String, Call> calls) {
        calls.put("create_topic", this::create);
        calls.put("create_assigned", this::createAssigned);
        calls.put("delete_topic", asked -> admin.deleteTopics(Set.of(asked.get("topic").asText())).all().get());
        calls.put("delete_topic_by_id", asked -> admin.deleteTopics(TopicCollection.ofTopicIds(id(asked))).all().get());
        calls.put("list_topics", asked -> admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get());
        calls.put("describe_topic", this::describe);
        calls.put("describe_topic_by_id", this::describeById);
        calls.put("describe_pages", this::describePages);
        calls.put("create_partitions", this::createPartitions);
        calls.put("delete_records", this::deleteRecords);
        calls.put("list_offset", this::listOffset);
    }

    private Object create(JsonNode asked) throws Exception {
        Map<String, String> settings = new HashMap<>();
        asked.get("settings").properties().forEach(one -> settings.put(one.getKey(), one.getValue().asText()));
        int partitions = asked.get("partitions").asInt();
        int replication = asked.get("replication").asInt();
        var topic = new NewTopic(
            asked.get("topic").asText(),
            partitions == -1 ? Optional.empty() : Optional.of(partitions),
            replication == -1 ? Optional.empty() : Optional.of((short) replication));
        var options = new CreateTopicsOptions().validateOnly(asked.get("validate_only").asBoolean());
        return admin.createTopics(List.of(topic.configs(settings)), options).all().get();
    }

    private Object createAssigned(JsonNode asked) throws Exception {
        Map<Integer, List<Integer>> replicas = new HashMap<>();
        for (JsonNode brokers : asked.get("replicas")) {
            List<Integer> ids = new ArrayList<>();
            brokers.forEach(broker -> ids.add(broker.asInt()));
            replicas.put(replicas.size(), ids);
        }
        return admin.createTopics(List.of(new NewTopic(asked.get("topic").asText(), replicas))).all().get();
    }

    private static List<Uuid> id(JsonNode asked) {
        return List.of(Uuid.fromString(asked.get("topic_id").asText()));
    }

    private Map<String, Object> describe(JsonNode asked) throws Exception {
        String topic = asked.get("topic").asText();
        TopicDescription found = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        return Map.of(
            "topic_id", found.topicId().toString(),
            "partitions", found.partitions().stream().map(one -> one.partition()).toList(),
            "leaders", found.partitions().stream().map(one -> one.leader() == null ? -1 : one.leader().id()).toList(),
            "replicas", found.partitions().stream().map(one -> ids(one.replicas())).toList(),
            "in_sync", found.partitions().stream().map(one -> ids(one.isr())).toList());
    }

    private static List<Integer> ids(List<Node> nodes) {
        return nodes.stream().map(Node::id).toList();
    }

    private String describeById(JsonNode asked) throws Exception {
        var found = admin.describeTopics(TopicCollection.ofTopicIds(id(asked))).allTopicIds().get();
        return found.values().iterator().next().name();
    }

    private List<List<Object>> describePages(JsonNode asked) throws Exception {
        List<String> names = new ArrayList<>();
        asked.get("topics").forEach(one -> names.add(one.asText()));
        var options = new DescribeTopicsOptions().partitionSizeLimitPerResponse(asked.get("page").asInt());
        List<List<Object>> seen = new ArrayList<>();
        for (var topic : admin.describeTopics(names, options).allTopicNames().get().values()) {
            topic.partitions().forEach(one -> seen.add(List.of(topic.name(), one.partition())));
        }
        return seen;
    }

    private Object createPartitions(JsonNode asked) throws Exception {
        var wanted = Map.of(asked.get("topic").asText(), NewPartitions.increaseTo(asked.get("total").asInt()));
        var options = new CreatePartitionsOptions().validateOnly(asked.get("validate_only").asBoolean());
        return admin.createPartitions(wanted, options).all().get();
    }

    private Long deleteRecords(JsonNode asked) throws Exception {
        var before = RecordsToDelete.beforeOffset(asked.get("before").asLong());
        var where = Reading.partition(asked);
        return admin.deleteRecords(Map.of(where, before)).lowWatermarks().get(where).get().lowWatermark();
    }

    private Long listOffset(JsonNode asked) throws Exception {
        var spec = switch (asked.get("spec").asText()) {
            case "earliest" -> OffsetSpec.earliest();
            case "latest" -> OffsetSpec.latest();
            default -> OffsetSpec.maxTimestamp();
        };
        var where = Reading.partition(asked);
        return admin.listOffsets(Map.of(where, spec)).partitionResult(where).get().offset();
    }
}
