"""Networks of other libraries and of the user, as backbones."""
