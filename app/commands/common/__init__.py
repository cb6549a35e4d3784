"""What commands share: options, instances, what they print, and the live view of a job."""
