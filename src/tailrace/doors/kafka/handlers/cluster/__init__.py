"""APIs about the cluster: API versions, brokers, coordinators, the metadata quorum, log directories, elections."""
