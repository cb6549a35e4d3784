"""Where the routes live."""

V1 = "/api/v1"
UPLOADS = f"{V1}/datasets"
