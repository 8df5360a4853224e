"""`python -m holdfast` is the same as `holdfast`."""

from .cli.app import main

main()
