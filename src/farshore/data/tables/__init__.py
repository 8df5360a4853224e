"""Tables: files and frames of rows, read so that no cell depends on another row."""
