// A member of a group: BOOTSTRAP TOPIC GROUP STRATEGY INSTANCE. Says what it has and what it reads; leaves at SIGTERM.
// There are no static members in kafkajs, so the instance is not used.
const { PartitionAssigners } = require("kafkajs");
const { kafka } = require("./client");
const range = require("./range");

const [bootstrap, topic, groupId, strategy] = process.argv.slice(2);
const assigner = { range, roundrobin: PartitionAssigners.roundRobin }[strategy];

async function main() {
  const consumer = kafka(bootstrap).consumer({
    groupId,
    partitionAssigners: [assigner],
    sessionTimeout: 6000,
    heartbeatInterval: 300,
    maxWaitTimeInMs: 100,
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    console.log(["assigned", ...(payload.memberAssignment[topic] ?? [])].join(" "));
  });
  process.on("SIGTERM", async () => {
    await consumer.disconnect();
    process.exit(0);
  });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    autoCommitInterval: 100,
    eachMessage: async ({ partition, message }) => console.log(`got ${partition} ${message.offset}`),
  });
}

main();
