// What every program here begins with: a client of kafkajs. Waits are short: brokers are near.
const { Kafka, logLevel } = require("kafkajs");

exports.kafka = (bootstrap) =>
  new Kafka({
    clientId: "interop-kafkajs",
    brokers: bootstrap.split(","),
    logLevel: logLevel.ERROR,
    logCreator: () => ({ namespace, log }) => process.stderr.write(`${namespace}: ${log.message} ${log.error ?? ""}\n`),
    retry: { initialRetryTime: 20, maxRetryTime: 500, retries: 20 },
  });
