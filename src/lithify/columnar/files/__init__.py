"""Files of a warehouse on local disks and object stores: opening, buffering, fsync, checksummed JSON."""
