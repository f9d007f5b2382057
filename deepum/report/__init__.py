"""Reports: what runs, traces and simulations came to, as charts for people and as files for
tools.
"""
