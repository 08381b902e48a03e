"""The workload of Select-joins, the schemes that it is a yardstick for, and a trial of them side by side."""
