"""Schema changes of the platform's database, applied in order by `agentplat migrate`."""
