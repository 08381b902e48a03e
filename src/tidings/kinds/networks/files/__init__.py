"""Networks from files and tables, and in folders."""
