"""Versions as files for others: archives, ONNX, skops, model cards."""
