"""Where the append-only log of publications is kept: memory, SQLite or PostgreSQL behind one port."""
