"""Plans: experiments as files, and the runs that they consist of."""
