"""`python -m deepum` is `deepum`."""

from deepum.cli import main

main()
