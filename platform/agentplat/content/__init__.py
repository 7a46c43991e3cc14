"""The content store: bytes by their digest, in a folder. The database and the trails hold refs and digests only."""
