"""Public files: fetched once, checked, unpacked and read without running what is in them."""
