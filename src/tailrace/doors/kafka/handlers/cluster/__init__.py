"""The cluster itself: API versions, brokers, the metadata quorum, log directories, leader elections."""
