import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.ElectionType;

/** Brokers, the metadata's quorum, what lies on disks, who leads. */
final class Cluster {
    private final Admin admin;

    Cluster(Admin admin) {
        this.admin = admin;
    }

    void offer(Map<String, Call> calls) {
        calls.put("describe_cluster", this::describe);
        calls.put("describe_quorum", this::quorum);
        calls.put("stored_bytes", this::storedBytes);
        calls.put("elect_preferred", this::elect);
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

    private Object elect(JsonNode asked) throws Exception {
        return admin.electLeaders(ElectionType.PREFERRED, Set.of(Reading.partition(asked))).all().get();
    }
}
