package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
)

// outcome is that of a request without a result: it failed, or the broker refused it.
func outcome[T interface{ Error() error }](answer T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return nil, answer.Error()
}

func createTopic(own *session, within context.Context, wanted asked) (any, error) {
	create := own.admin.CreateTopics
	if wanted.ValidateOnly {
		create = own.admin.ValidateCreateTopics
	}
	return outcome(create(within, wanted.Partitions, wanted.Replication, wanted.Settings, wanted.Topic))
}

func deleteTopic(own *session, within context.Context, wanted asked) (any, error) {
	return outcome(own.admin.DeleteTopics(within, wanted.Topic))
}

func listTopics(own *session, within context.Context, _ asked) (any, error) {
	found, err := own.admin.ListTopicsWithInternal(within)
	return found.Names(), err
}

func describeTopic(own *session, within context.Context, wanted asked) (any, error) {
	topics, err := own.admin.ListTopics(within, wanted.Topic)
	if err != nil {
		return nil, err
	}
	if err := topics.Error(); err != nil {
		return nil, err
	}
	partitions, leaders := []int32{}, []int32{}
	replicas, inSync := [][]int32{}, [][]int32{}
	for _, one := range topics[wanted.Topic].Partitions.Sorted() {
		partitions = append(partitions, one.Partition)
		leaders = append(leaders, one.Leader)
		replicas = append(replicas, one.Replicas)
		inSync = append(inSync, one.ISR)
	}
	return map[string]any{"partitions": partitions, "leaders": leaders, "replicas": replicas, "in_sync": inSync}, nil
}

func createPartitions(own *session, within context.Context, wanted asked) (any, error) {
	create := own.admin.UpdatePartitions
	if wanted.ValidateOnly {
		create = own.admin.ValidateUpdatePartitions
	}
	return outcome(create(within, wanted.Total, wanted.Topic))
}

func listGroups(own *session, within context.Context, _ asked) (any, error) {
	found, err := own.admin.ListGroups(within)
	states := map[string]string{}
	for name, one := range found {
		states[name] = one.State
	}
	return states, err
}

// describeGroup asks both ways: a group of the consumer protocol (KIP-848) is none of the classic ones.
func describeGroup(own *session, within context.Context, wanted asked) (any, error) {
	clients := []string{}
	consumers, err := own.admin.DescribeConsumerGroups(within, wanted.Group)
	if one := consumers[wanted.Group]; err == nil && one.Err == nil {
		for _, member := range one.Members {
			clients = append(clients, member.ClientID)
		}
		return map[string]any{"state": one.State, "protocol": one.AssignorName, "clients": clients}, nil
	}
	found, err := own.admin.DescribeGroups(within, wanted.Group)
	if err != nil {
		return nil, err
	}
	one := found[wanted.Group]
	for _, member := range one.Members {
		clients = append(clients, member.ClientID)
	}
	return map[string]any{"state": one.State, "protocol": one.Protocol, "clients": clients}, one.Err
}

func committed(own *session, within context.Context, wanted asked) (any, error) {
	found, err := own.admin.FetchOffsets(within, wanted.Group)
	offsets := map[int32]int64{}
	found.Each(func(one kadm.OffsetResponse) {
		if one.Topic == wanted.Topic {
			offsets[one.Partition] = one.At
		}
	})
	return offsets, err
}

func commit(own *session, within context.Context, wanted asked) (any, error) {
	offsets := kadm.Offsets{}
	for partition, at := range wanted.Offsets {
		offsets.Add(kadm.Offset{Topic: wanted.Topic, Partition: partition, At: at, LeaderEpoch: -1})
	}
	return outcome(own.admin.CommitOffsets(within, wanted.Group, offsets))
}

func deleteGroup(own *session, within context.Context, wanted asked) (any, error) {
	return outcome(own.admin.DeleteGroups(within, wanted.Group))
}
