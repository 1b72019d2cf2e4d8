"""The only room that sees Google's clients, grpc and protos: Protocols and their Google sides."""
