"""Where the routes live."""

V1 = "/api/v1"
DATASETS = f"{V1}/datasets"
ARCHIVES = f"{V1}/models/import"
UPLOADS = f"{V1}/uploads"
HIERARCHIES = f"{V1}/hierarchies"
