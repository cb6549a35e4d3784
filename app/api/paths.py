"""Where the routes live."""

V1 = "/api/v1"
DATASETS = f"{V1}/datasets"
HIERARCHIES = f"{V1}/hierarchies"
