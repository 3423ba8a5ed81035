"""The queries: nearest, occluded, count, all hits, first, integrate, deposit; how rays are scheduled."""
