"""What a label is: scores with direction and unit, and calibration."""
