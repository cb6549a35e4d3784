"""Jobs in class shards: the coordinator, the shards, and what they exchange."""
