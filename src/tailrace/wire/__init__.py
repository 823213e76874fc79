"""The Kafka protocol: one declaration per message, and the codecs compiled from the declarations."""
