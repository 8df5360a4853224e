"""The report: tables beside the paper's, ranks, significance, figures, on one page."""
