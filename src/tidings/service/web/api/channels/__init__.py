"""Operations on channels, and the links in their messages."""
