"""The version that every model and answer carries."""

VERSION = "1.0.0rc1"
