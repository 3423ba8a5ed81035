"""Files in and out: formats, and casts of files larger than memory."""
