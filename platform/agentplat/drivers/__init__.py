"""Drivers do the thinking in runs. They call tools and finish, and know neither the store nor each other (R-5)."""
