"""The nine dissemination schemes of Select-joins, Table 1, behind one contract.

    server = Server([Table(...), Table(...)])
    server.subscribe(binary(Side("r", (1,), 0), Side("s", (0,), 1)), [(a_low, a_high), (c_low, c_high)])
    for message in DEFAULT(server).messages(Change("r", new=row)):
        accepts(message, server.subscription(7))

A scheme decides what is sent and how much, never what a client ends up with. `attributes.relax` takes subscriptions in
the language; `decomposition` and `costs` choose semijoins of joins of more than two tables.
"""

from tidings.dissemination.schemes.filters import Subscription, accepts, audience
from tidings.dissemination.schemes.message import Bounds, Image, Message, SelectionForm, Skyline
from tidings.dissemination.schemes.scheme import Scheme
from tidings.dissemination.schemes.semijoins import EnumSJ, RefSJClu, RefSJCluPlus, RefSJSub, RefSJTup
from tidings.dissemination.schemes.server import Change, Server
from tidings.dissemination.schemes.signature import Semijoin, Side, Signature, binary, signature_of
from tidings.dissemination.schemes.straightforward import EnumJ, RefJ, RefJPlus, RelSel

DEFAULT = RefSJCluPlus
SCHEMES: dict[str, type[Scheme]] = {
    scheme.name: scheme
    for scheme in (EnumJ, RelSel, RefJ, RefJPlus, EnumSJ, RefSJSub, RefSJTup, RefSJClu, RefSJCluPlus)
}

__all__ = [
    "DEFAULT",
    "SCHEMES",
    "Bounds",
    "Change",
    "Image",
    "Message",
    "Scheme",
    "SelectionForm",
    "Semijoin",
    "Server",
    "Side",
    "Signature",
    "Skyline",
    "Subscription",
    "accepts",
    "audience",
    "binary",
    "signature_of",
]
