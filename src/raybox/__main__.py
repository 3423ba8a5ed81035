"""``python -m raybox`` does what ``raybox`` does."""

from raybox.cli import main

if __name__ == "__main__":
    main(prog_name="raybox")
