"""Images: folders, arrays and columns of images."""
