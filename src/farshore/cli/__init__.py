"""The command line: one file per command, which only parses arguments and prints."""
