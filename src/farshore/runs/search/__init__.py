"""Search: which settings are tried and which trial is selected, by source validation only."""
