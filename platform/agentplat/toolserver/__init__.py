"""The tools of a run over MCP, the Model Context Protocol: the same tools, by the same way through the Gate, as over HTTP."""
