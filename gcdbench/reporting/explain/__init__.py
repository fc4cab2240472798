"""Looking at a trained model: where it looks, whether that is the lesion, and which classes it takes for each other."""
