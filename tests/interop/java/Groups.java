import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Consumer groups as an administrator sees and changes them. */
record Groups(Admin admin) {
    void offer(Map<String, Call> calls) {
        calls.put("list_groups", this::list);
        calls.put("describe_group", this::describe);
        calls.put("committed", this::committed);
        calls.put("commit", this::commit);
        calls.put("delete_group", asked -> admin.deleteConsumerGroups(name(asked)).all().get());
    }

    private static List<String> name(JsonNode asked) {
        return List.of(asked.get("group").asText());
    }

    private Map<String, String> list(JsonNode asked) throws Exception {
        Map<String, String> states = new HashMap<>();
        for (var one : admin.listGroups(ListGroupsOptions.forConsumerGroups()).all().get()) {
            states.put(one.groupId(), one.groupState().map(Object::toString).orElse(""));
        }
        return states;
    }

    private Map<String, Object> describe(JsonNode asked) throws Exception {
        var found = admin.describeConsumerGroups(name(asked)).all().get().values().iterator().next();
        return Map.of(
            "state", found.groupState().toString(),
            "protocol", found.partitionAssignor(),
            "clients", found.members().stream().map(one -> one.clientId()).toList());
    }

    private Map<Integer, Long> committed(JsonNode asked) throws Exception {
        Map<Integer, Long> offsets = new HashMap<>();
        var found = admin.listConsumerGroupOffsets(asked.get("group").asText()).partitionsToOffsetAndMetadata().get();
        found.forEach((where, at) -> {
            if (where.topic().equals(asked.get("topic").asText()) && at != null) {
                offsets.put(where.partition(), at.offset());
            }
        });
        return offsets;
    }

    private Object commit(JsonNode asked) throws Exception {
        return admin.alterConsumerGroupOffsets(asked.get("group").asText(), offsets(asked)).all().get();
    }

    static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode asked) {
        Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>();
        asked.get("offsets").properties().forEach(one -> wanted.put(
            new TopicPartition(asked.get("topic").asText(), Integer.parseInt(one.getKey())),
            new OffsetAndMetadata(one.getValue().asLong())));
        return wanted;
    }
}
