"""Commands for models, their versions and aliases."""
