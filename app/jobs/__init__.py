"""Jobs: requests, the queue, leases, steps, plans and tunings."""
