"""Recompute instead of keep: dynamic tensor rematerialisation (docs/rematerialise.md)."""
