"""Drop-ins: other libraries' interfaces, answered by raybox."""
