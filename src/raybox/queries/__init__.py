"""The queries: nearest, occluded, count, all hits, first; and how rays are scheduled for them."""
