"""The command line of the platform, one module per kind of command."""
