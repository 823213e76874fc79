"""Settings of topics, brokers and groups: describe and alter them."""
