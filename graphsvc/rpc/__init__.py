"""The gRPC face of the service: decode, ask a use case, encode."""
