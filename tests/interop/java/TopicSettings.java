import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigResource;

/** The settings of topics and brokers, shown and changed. */
record TopicSettings(Admin admin) {
    private static final Set<ConfigEntry.ConfigSource> own = Set.of(
        ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG);

    void offer(Map<String, Call> calls) {
        calls.put("topic_settings", asked -> shown(ConfigResource.Type.TOPIC, asked.get("topic").asText()));
        calls.put("broker_settings", asked -> shown(ConfigResource.Type.BROKER, asked.get("broker").asText()));
        calls.put("change_settings", this::change);
        calls.put("configured", this::configured);
    }

    private Map<String, Object> shown(ConfigResource.Type kind, String name) throws Exception {
        var resource = new ConfigResource(kind, name);
        Map<String, Object> shown = new HashMap<>();
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            Map<String, Object> one = new HashMap<>();
            one.put("value", entry.value());
            one.put("own", own.contains(entry.source()));
            shown.put(entry.name(), one);
        }
        return shown;
    }

    private Object change(JsonNode asked) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        asked.get("changes").properties().forEach(one -> {
            boolean gone = one.getValue().isNull();
            var entry = new ConfigEntry(one.getKey(), gone ? null : one.getValue().asText());
            changes.add(new AlterConfigOp(entry, gone ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET));
        });
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, asked.get("topic").asText());
        var options = new AlterConfigsOptions().validateOnly(asked.get("validate_only").asBoolean());
        return admin.incrementalAlterConfigs(Map.of(resource, changes), options).all().get();
    }

    private Map<String, List<String>> configured(JsonNode asked) throws Exception {
        Map<String, List<String>> found = new HashMap<>();
        for (ConfigResource one : admin.listConfigResources().all().get()) {
            found.computeIfAbsent(one.type().name().toLowerCase(), kind -> new ArrayList<>()).add(one.name());
        }
        return found;
    }
}
