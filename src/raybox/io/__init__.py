"""Files: readers and writers of each format, and casts of files larger than memory."""
