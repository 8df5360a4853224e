"""Sweeps: experiments as files, a plan of runs, a folder a run, engines that carry them out, and the store of results."""
