"""APIs about configs: describe and alter the settings of topics, brokers and groups."""
