package main

import (
	"context"
	"sort"

	"github.com/twmb/franz-go/pkg/kadm"
)

func listShareGroups(own *session, within context.Context, _ asked) (any, error) {
	found, err := own.admin.ListGroupsByType(within, []string{"share"})
	states := map[string]string{}
	for name, one := range found {
		states[name] = one.State
	}
	return states, err
}

func describeShareGroup(own *session, within context.Context, wanted asked) (any, error) {
	found, err := own.admin.DescribeShareGroups(within, wanted.Group)
	if err != nil {
		return nil, err
	}
	members := [][]int32{}
	for _, member := range found[wanted.Group].Members {
		has := []int32{}
		for _, partitions := range member.Assignment {
			for one := range partitions {
				has = append(has, one)
			}
		}
		sort.Slice(has, func(one, other int) bool { return has[one] < has[other] })
		members = append(members, has)
	}
	return map[string]any{"state": found[wanted.Group].GroupState, "members": members}, found.Error()
}

func shareOffsets(own *session, within context.Context, wanted asked) (any, error) {
	found, err := own.admin.DescribeShareGroupOffsets(within, wanted.Group)
	if err != nil {
		return nil, err
	}
	offsets := map[int32][]int64{}
	for partition, one := range found[wanted.Group].Offsets[wanted.Topic] {
		if one.Err != nil {
			return nil, one.Err
		}
		if one.StartOffset >= 0 {
			offsets[partition] = []int64{one.StartOffset, one.Lag}
		}
	}
	return offsets, found.Error()
}

func alterShareOffsets(own *session, within context.Context, wanted asked) (any, error) {
	offsets := kadm.Offsets{}
	for partition, at := range wanted.Offsets {
		offsets.Add(kadm.Offset{Topic: wanted.Topic, Partition: partition, At: at})
	}
	return outcome(own.admin.AlterShareGroupOffsets(within, wanted.Group, offsets))
}

func deleteShareOffsets(own *session, within context.Context, wanted asked) (any, error) {
	return outcome(own.admin.DeleteShareGroupOffsets(within, wanted.Group, wanted.Topic))
}
