"""The audit: what to expect at the next site, from runs with every site left out.

It is not called `audit`, because `farshore.audit` is the function.
"""
