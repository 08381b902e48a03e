"""What an operator is, where operators come from, and how they are called."""
