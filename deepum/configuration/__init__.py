"""Settings: what each is (`setting`), all there are (`settings`), and where their values come from
(`resolve`).
"""
