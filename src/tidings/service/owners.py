"""Says whose a thing of the service is: owners are texts in the stores.

A token owns what it makes by its id. A delegate's user owns by `"{id}/{user}"`, and the delegate itself, without a user, stands
for `"{id}/"`: it owns nothing, and whatever its users own is its too. Ids of tokens have no slash, so a user's name may have
one, and no owner of a user begins as a hidden one does.
"""

from __future__ import annotations

from tidings.errors import TidingsError

HEADER = "Tidings-User"
LONGEST_USER = 200  # bytes
_OF = "/"


class UserError(TidingsError):
    """The user whom a delegate acts for is missing, or cannot be one."""

    status = 422


def owner_of(token: str, user: str = "") -> str:
    """The owner of what a delegate's user has; without a user that of what all of them have."""
    return f"{token}{_OF}{user}"


def token_of(owner: str) -> str:
    """The id of the token of an owner."""
    return owner.partition(_OF)[0]


def user_of(owner: str) -> str | None:
    """The user of an owner; None if it is no delegate's user."""
    return owner.partition(_OF)[2] or None


def is_of_all_users(owner: str) -> bool:
    """Whether an owner stands for all users of a delegate."""
    return owner.endswith(_OF) and owner.count(_OF) == 1


def owns(owner: str, things_owner: str) -> bool:
    """Whether a thing is of this owner."""
    if is_of_all_users(owner):
        return things_owner.startswith(owner)
    return owner == things_owner


def check_user(user: str) -> str:
    """The user; UserError if it cannot be one."""
    size = len(user.encode("utf-8", "surrogatepass"))
    if 0 < size <= LONGEST_USER and user.isprintable() and user == user.strip():
        return user
    raise UserError(
        f"{user[:40]!r} is no user; give {HEADER} 1 to {LONGEST_USER} bytes of UTF-8 that can be printed,"
        " without blanks around them"
    )
