"""The audit: what a practitioner can expect at the next site, from runs with every site left out."""
