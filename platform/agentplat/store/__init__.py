"""The platform's own database: agents, versions, reports, the outbox, people, acts. One schema for SQLite and PostgreSQL."""
