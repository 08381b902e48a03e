"""The content-driven network: nodes that pass packets on to the links behind which somebody wants them."""
