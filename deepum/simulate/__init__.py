"""Simulation: any trace, on any machine preset, under any policy, beside the physical limit."""
