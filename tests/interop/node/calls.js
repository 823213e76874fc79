// Takes a call as a line of JSON on standard input, and answers it with a line.
// A broker's refusal comes back as the code that the protocol gives it.
const readline = require("node:readline");
const { Partitioners } = require("kafkajs");
const { kafka } = require("./client");

const topicAlreadyExists = 36; // which kafkajs tells by returning false
const client = kafka(process.argv[2]);
const admin = client.admin();

const calls = {
  async write_keyed({ topic, keys }) {
    const producer = client.producer({ createPartitioner: Partitioners.DefaultPartitioner });
    await producer.connect();
    const stored = await producer.send({ topic, acks: -1, messages: keys.map((key) => ({ key, value: key })) });
    await producer.disconnect();
    return stored.map((one) => one.errorCode);
  },
  async create_topic({ topic, partitions, replication, settings, validate_only }) {
    const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }));
    const wanted = { topic, numPartitions: partitions, replicationFactor: replication, configEntries };
    const made = await admin.createTopics({
      topics: [wanted],
      validateOnly: validate_only,
      waitForLeaders: !validate_only,
    });
    if (!made) throw { code: topicAlreadyExists };
  },
  async delete_topic({ topic }) {
    await admin.deleteTopics({ topics: [topic] });
  },
  async list_topics() {
    return admin.listTopics();
  },
  async describe_topic({ topic }) {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    const partitions = topics[0].partitions.sort((one, other) => one.partitionId - other.partitionId);
    return {
      partitions: partitions.map((one) => one.partitionId),
      leaders: partitions.map((one) => one.leader),
      replicas: partitions.map((one) => one.replicas),
      in_sync: partitions.map((one) => one.isr),
    };
  },
  async create_partitions({ topic, total, validate_only }) {
    await admin.createPartitions({ topicPartitions: [{ topic, count: total }], validateOnly: validate_only });
  },
  async list_groups() {
    const { groups } = await admin.listGroups();
    return Object.fromEntries(groups.map((one) => [one.groupId, ""]));
  },
  async describe_group({ group }) {
    const { groups } = await admin.describeGroups([group]);
    const { state, protocol, members } = groups[0];
    return { state, protocol, clients: members.map((one) => one.clientId) };
  },
  async committed({ group, topic }) {
    const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
    return Object.fromEntries(found.partitions.map((one) => [one.partition, Number(one.offset)]));
  },
  async commit({ group, topic, offsets }) {
    const partitions = Object.entries(offsets).map(([partition, offset]) => ({ partition: Number(partition), offset: String(offset) }));
    await admin.setOffsets({ groupId: group, topic, partitions });
  },
  async delete_group({ group }) {
    await admin.deleteGroups([group]);
  },
};

function refusal(error) {
  // the cause that has a code lies under errors that speak of retries, of several topics or of several groups
  const inner = error.cause ?? error.errors?.[0] ?? error.groups?.[0]?.error ?? error.groups?.[0];
  const code = error.code ?? error.errorCode;
  if (typeof code === "number") return { refused: code, text: String(error) };
  return inner ? refusal(inner) : { failed: -1, text: String(error.stack ?? error) };
}

async function main() {
  await admin.connect();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line);
    const answer = await calls[asked.call](asked).then((result) => ({ result: result ?? null }), refusal);
    console.log(JSON.stringify(answer));
  }
  process.exit(0);
}

main();
