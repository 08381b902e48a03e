"""Jobs over past events that come to an end, beside the stream."""
