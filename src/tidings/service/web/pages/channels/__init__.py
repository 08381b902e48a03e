"""The pages of channels, for their owners, and for those who have a link out of a message."""
