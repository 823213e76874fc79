import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Kafka's own client, driven line by line: a call as JSON on standard input, its answer as JSON on standard output.
 * A broker's refusal comes back as the code that the protocol gives it.
 */
public final class Calls {
    private static final ObjectMapper json = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        try (Admin admin = Admin.create(Settings.shared(bootstrap))) {
            Map<String, Call> calls = new HashMap<>();
            new Writing(bootstrap).offer(calls);
            new Reading(bootstrap).offer(calls);
            new Topics(admin).offer(calls);
            new TopicSettings(admin).offer(calls);
            new Cluster(admin).offer(calls);
            new Groups(admin).offer(calls);
            new ShareGroups(admin).offer(calls);
            new Transactions(admin, bootstrap).offer(calls);
            serve(calls);
        }
    }

    /** Answers calls until standard input ends. */
    static void serve(Map<String, Call> calls) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            JsonNode asked = json.readTree(line);
            System.out.println(json.writeValueAsString(answer(calls.get(asked.get("call").asText()), asked)));
        }
    }

    private static Map<String, Object> answer(Call call, JsonNode asked) {
        Map<String, Object> answer = new HashMap<>();
        try {
            answer.put("result", call.answer(asked));
        } catch (Exception thrown) {
            Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            answer.put(cause instanceof ApiException ? "refused" : "failed", Errors.forException(cause).code());
            answer.put("text", cause.toString());
        }
        return answer;
    }
}
