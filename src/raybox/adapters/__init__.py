"""Drop-in replacements for other libraries' interfaces."""
