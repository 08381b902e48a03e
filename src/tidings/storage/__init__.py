"""What lies in folders: versions of an index, the event log, what streams have learnt of operators."""
