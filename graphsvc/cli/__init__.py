"""The command line of the graph service, one module per command."""
