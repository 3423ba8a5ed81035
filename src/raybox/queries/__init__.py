"""The queries: nearest, occluded, count, all hits, first, integrate, deposit; and how rays are scheduled for them."""
