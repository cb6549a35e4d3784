"""The job engine: the queue, leases, slots of shards, trials, and what jobs tell while they run."""
