"""Plans: experiments as files, and the runs that they stand for."""
