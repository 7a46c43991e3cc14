"""Generated from proto/graphsvc/v1 by proto/generate.py: the messages and stubs of the gRPC API. Touched by rpc and client only."""
