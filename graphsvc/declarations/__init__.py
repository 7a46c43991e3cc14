"""Declarations in and out of files: JSON lines, Parquet and YAML manifests."""
