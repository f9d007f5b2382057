"""What a run came to: collected from its sessions and simulated GPUs, summed, and told in a few
lines.
"""
