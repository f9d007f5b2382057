"""The daemon: one for a user and machine, started on demand; a thread for each program's session.

`server` accepts programs, `hello` reads their first message, `session` is the loop from events to
commands, `sources` makes a core from settings and a profile, `recorder` writes the event log,
`report` the statistics that the launcher collects.
"""
