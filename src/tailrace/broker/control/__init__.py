"""The controller role of a broker, the requests that the controller serves, and the duties of partition leaders."""
