import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** Share groups, and the settings of groups, as an administrator sees and changes them. */
final class ShareGroups {
    private final Admin admin;

    ShareGroups(Admin admin) {
        this.admin = admin;
    }

    void offer(Map<String, Call> calls) {
        calls.put("group_settings", this::settings);
        calls.put("change_group_settings", this::change);
        calls.put("list_share_groups", this::list);
        calls.put("describe_share_group", this::describe);
        calls.put("share_offsets", this::offsets);
        calls.put("alter_share_offsets", this::alter);
        calls.put("delete_share_offsets", asked ->
            admin.deleteShareGroupOffsets(group(asked), Set.of(asked.get("topic").asText())).all().get());
        calls.put("delete_share_group", asked -> admin.deleteShareGroups(List.of(group(asked))).all().get());
    }

    private static String group(JsonNode asked) {
        return asked.get("group").asText();
    }

    private static ConfigResource resource(JsonNode asked) {
        return new ConfigResource(ConfigResource.Type.GROUP, group(asked));
    }

    private Map<String, Map<String, Object>> settings(JsonNode asked) throws Exception {
        Map<String, Map<String, Object>> found = new HashMap<>();
        for (var one : admin.describeConfigs(List.of(resource(asked))).all().get().get(resource(asked)).entries()) {
            boolean own = one.source() == ConfigEntry.ConfigSource.DYNAMIC_GROUP_CONFIG;
            Map<String, Object> setting = new HashMap<>();
            setting.put("value", one.value());
            setting.put("own", own);
            found.put(one.name(), setting);
        }
        return found;
    }

    private Object change(JsonNode asked) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        asked.get("changes").properties().forEach(one -> changes.add(new AlterConfigOp(
            new ConfigEntry(one.getKey(), one.getValue().isNull() ? null : one.getValue().asText()),
            one.getValue().isNull() ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET)));
        return admin.incrementalAlterConfigs(Map.of(resource(asked), changes)).all().get();
    }

    private Map<String, String> list(JsonNode asked) throws Exception {
        Map<String, String> states = new HashMap<>();
        for (var one : admin.listGroups(ListGroupsOptions.forShareGroups()).all().get()) {
            states.put(one.groupId(), one.groupState().map(Object::toString).orElse(""));
        }
        return states;
    }

    private Map<String, Object> describe(JsonNode asked) throws Exception {
        var found = admin.describeShareGroups(List.of(group(asked))).all().get().get(group(asked));
        return Map.of(
            "state", found.groupState().toString(),
            "members", found.members().stream().map(one ->
                one.assignment().topicPartitions().stream().map(TopicPartition::partition).sorted().toList()).toList());
    }

    private Map<Integer, List<Long>> offsets(JsonNode asked) throws Exception {
        var specs = Map.of(group(asked), new ListShareGroupOffsetsSpec());
        Map<Integer, List<Long>> found = new HashMap<>();
        admin.listShareGroupOffsets(specs).partitionsToOffsetInfo(group(asked)).get().forEach((where, one) -> {
            if (where.topic().equals(asked.get("topic").asText()) && one != null) {
                found.put(where.partition(), List.of(one.startOffset(), one.lag().orElse(-1L)));
            }
        });
        return found;
    }

    private Object alter(JsonNode asked) throws Exception {
        Map<TopicPartition, Long> wanted = new HashMap<>();
        Groups.offsets(asked).forEach((where, at) -> wanted.put(where, at.offset()));
        return admin.alterShareGroupOffsets(group(asked), wanted).all().get();
    }
}
