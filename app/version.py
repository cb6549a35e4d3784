"""The version that every model and answer carries."""

VERSION = "0.4.0"
