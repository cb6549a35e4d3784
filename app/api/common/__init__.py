"""What routes share: paths, bodies, parameters, problems, jobs that are queued once, and the API's description."""
