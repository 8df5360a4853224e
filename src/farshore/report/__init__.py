"""The report: tables, ranks, significance, figures, on one page."""
