"""What `scripts/gpu_acceptance` runs: a machine with a GPU becomes evidence. docs/acceptance.md
says what the answers mean.
"""
