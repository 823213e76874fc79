// kafkajs brings round-robin only; assignors are the client's own business, so here is range:
// members in order of their ids get neighbouring partitions, the first ones one more where they do not go round.
const { AssignerProtocol } = require("kafkajs");

module.exports = ({ cluster }) => ({
  name: "range",
  version: 0,

  protocol: ({ topics }) => ({
    name: "range",
    metadata: AssignerProtocol.MemberMetadata.encode({ version: 0, topics, userData: Buffer.alloc(0) }),
  }),

  assign: async ({ members, topics }) => {
    const ids = members.map((member) => member.memberId).sort();
    const given = new Map(ids.map((id) => [id, {}]));
    for (const topic of topics) {
      const partitions = cluster.findTopicPartitionMetadata(topic).map((one) => one.partitionId).sort((a, b) => a - b);
      ids.forEach((id, place) => {
        const [from, to] = [place, place + 1].map((at) => Math.ceil((at * partitions.length) / ids.length));
        given.get(id)[topic] = partitions.slice(from, to);
      });
    }
    return ids.map((memberId) => ({
      memberId,
      memberAssignment: AssignerProtocol.MemberAssignment.encode({
        version: 0,
        assignment: given.get(memberId),
        userData: Buffer.alloc(0),
      }),
    }));
  },
});
