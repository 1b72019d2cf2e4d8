"""A local cloud that speaks Google's own protos over gRPC and runs nodes as real processes."""
