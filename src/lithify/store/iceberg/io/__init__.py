"""Files of a warehouse: local or remote, small documents, checksums."""
