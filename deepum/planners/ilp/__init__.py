"""Integer programs of which tensors move when (docs/ilp.md)."""
