"""What stands around every request: connections, hosts and origins, bounds of bodies, ids and the log."""
