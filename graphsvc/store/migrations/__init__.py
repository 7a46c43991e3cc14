"""The steps by which the schema of the log came to be what `schema.py` says; each is frozen once it was released."""
