"""Kafka's messages, declared once each, and the codecs compiled from them."""
