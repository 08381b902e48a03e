"""Messages of a scheme from the live system: who makes them, how they are written, and who rebuilds rows from them."""
