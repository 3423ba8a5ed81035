"""Going through the tree with one ray, with a stream of rays, or with packets."""
