import com.fasterxml.jackson.databind.JsonNode;

/** One thing that the client can be asked to do; what it returns becomes JSON. */
interface Call {
    Object answer(JsonNode asked) throws Exception;
}
