"""Datasets: uploads, imports, rows, versions, appending and corrections."""
