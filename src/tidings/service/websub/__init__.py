"""WebSub: the hub that pushes this service's feeds to subscribers, and the subscriber that followed feeds are pushed to."""
