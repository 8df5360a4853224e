"""The command line: one file a command, nothing but argument reading and printing."""
