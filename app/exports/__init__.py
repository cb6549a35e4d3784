"""Models taken away and brought in: archives, ONNX, skops, cards."""
