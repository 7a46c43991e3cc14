"""The words of the platform: scopes, access, agents and their versions, waiting publications, refusals. No input or output here."""
