"""Tables as they are declared, and what a subscription asks of them."""
