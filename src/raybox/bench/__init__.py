"""Speed beside the peers: the same boxes and rays for all, alternated runs, answers compared."""
