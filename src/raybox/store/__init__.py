"""What raybox stores for itself: one checksum, one record form, one kind of folder, one lock.

============  ==========================================================================
module        holds
============  ==========================================================================
``checksum``  XXH3-128 of bytes, arrays, texts, facts and files
``record``    a JSON value that says what it is, and that shows damage
``folder``    folders that only this user writes to, by their descriptors
``lock``      one process at a time in a folder
``disk``      files whose bytes are all written, or an error with the path and the step
``identity``  facts that change when an input is changed or replaced
============  ==========================================================================
"""
