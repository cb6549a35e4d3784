"""Routes for models, their versions and aliases, and for versions that go or come back."""
