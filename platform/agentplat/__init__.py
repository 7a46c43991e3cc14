"""The companion platform: keeps agents, their versions and their people, and publishes through the graph service."""
