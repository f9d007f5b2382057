"""`deepum top`: all sessions, live, in a terminal. `history` keeps what was seen, `panel` draws it
as lines, `app` is the terminal's screen (it and `questions` alone need textual).
"""
