"""What all services use: finding rows, what is remembered for a moment, what stands in the way of a deletion."""
