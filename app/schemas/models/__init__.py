"""Models, their versions and aliases, and versions that go or come back."""
