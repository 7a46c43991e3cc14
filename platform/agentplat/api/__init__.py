"""The HTTP API: routes decode, ask a use case and encode; nothing is decided here."""
