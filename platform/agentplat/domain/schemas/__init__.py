"""JSON Schema draft 2020-12, held to what it says: nothing is fetched, nothing is passed over in silence, and work is counted."""
