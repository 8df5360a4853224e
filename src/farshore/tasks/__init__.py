"""What a label is: outputs, loss, scores with direction and unit, balance and calibration."""
