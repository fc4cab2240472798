"""Images decoded once: decoding, hashing, the image store, and the sets of images a method may look at."""
