"""What is known of PyTorch, for whatever watches a program's operators: what these change, where
their arguments' memory is, where steps of a training end.
"""
