"""One module per generated page, picture or notebook of docs/, with the texts they start from."""
