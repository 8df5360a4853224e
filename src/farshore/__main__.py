"""`python -m farshore` is the same as `farshore`."""

from .cli.app import main

main()
