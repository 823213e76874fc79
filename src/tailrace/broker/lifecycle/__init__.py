"""A broker's life: find out which broker it is, join the cluster, register, work in the background, shut down."""
