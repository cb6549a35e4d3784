"""HTTP plumbing that all routes share: bodies, parameters, problems, limits."""
