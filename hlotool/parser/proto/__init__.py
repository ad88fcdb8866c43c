"""Binary inputs: HLO protos and captured executions, decoded without protoc and without XLA."""
