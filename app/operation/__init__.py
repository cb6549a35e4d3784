"""Running the service: health, metrics, sweep, storage, backup, supervision, compilation ahead."""
