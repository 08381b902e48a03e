"""In which order operators are evaluated."""
