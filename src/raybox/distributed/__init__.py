"""Scenes and rays spread over files and machines."""
