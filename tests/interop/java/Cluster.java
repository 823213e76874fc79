import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.ElectionType;

/** Brokers, the metadata's quorum, what lies on disks, who leads. */
record Cluster(Admin admin) {
    void offer(Map<String, Call> calls) {
        calls.put("describe_cluster", this::describe);
        calls.put("describe_quorum", this::quorum);
        calls.put("stored_bytes", this::storedBytes);
        calls.put("elect_preferred", this::elect);
        calls.put("features", this::features);
        calls.put("raise_feature", this::raiseFeature);
    }

    private Map<String, Object> describe(JsonNode asked) throws Exception {
        var found = admin.describeCluster();
        return Map.of(
            "cluster_id", found.clusterId().get(),
            "controller", found.controller().get().id(),
            "brokers", found.nodes().get().stream().map(one -> List.of(one.id(), one.host(), one.port())).toList());
    }

    private Map<String, Object> quorum(JsonNode asked) throws Exception {
        var found = admin.describeMetadataQuorum().quorumInfo().get();
        return Map.of(
            "leader", found.leaderId(),
            "voters", found.voters().stream().map(one -> one.replicaId()).toList(),
            "observers", found.observers().stream().map(one -> one.replicaId()).toList());
    }

    private Long storedBytes(JsonNode asked) throws Exception {
        List<Integer> brokers = admin.describeCluster().nodes().get().stream().map(one -> one.id()).toList();
        long bytes = 0;
        for (var folders : admin.describeLogDirs(brokers).allDescriptions().get().values()) {
            for (var folder : folders.values()) {
                bytes += folder.replicaInfos().entrySet().stream()
                    .filter(one -> one.getKey().topic().equals(asked.get("topic").asText()))
                    .mapToLong(one -> one.getValue().size())
                    .sum();
            }
        }
        return bytes;
    }

    private Map<String, List<Short>> features(JsonNode asked) throws Exception {
        var found = admin.describeFeatures().featureMetadata().get();
        var inForce = found.finalizedFeatures();
        return found.supportedFeatures().entrySet().stream().collect(Collectors.toMap(
            one -> one.getKey(),
            one -> List.of(
                one.getValue().minVersion(),
                one.getValue().maxVersion(),
                inForce.get(one.getKey()).maxVersionLevel())));
    }

    private Object raiseFeature(JsonNode asked) throws Exception {
        var update = new FeatureUpdate((short) asked.get("level").asInt(), FeatureUpdate.UpgradeType.UPGRADE);
        var options = new UpdateFeaturesOptions().validateOnly(asked.get("validate_only").asBoolean());
        return admin.updateFeatures(Map.of(asked.get("name").asText(), update), options).all().get();
    }

    private Object elect(JsonNode asked) throws Exception {
        return admin.electLeaders(ElectionType.PREFERRED, Set.of(Reading.partition(asked))).all().get();
    }
}
