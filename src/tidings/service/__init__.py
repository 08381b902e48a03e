"""The service: subscriptions with a life, events over HTTP, answers in feeds, streams and webhooks, and a page.

Control plane and data plane are apart. The *registry* holds subscriptions, tokens, sources and deliveries; the
*mailbox* holds what subscribers were told. An accepted event is in the event log before it is answered; a *driver*,
a process of its own with Spark in it, matches the log against the index and puts each micro-batch into the mailbox
in one transaction. Everything that delivers reads the mailbox from a cursor on, so nothing is told twice or skipped.

    HTTP, page, XML-RPC ─► Life ─► registry ─► Indexing ─► index versions ─┐
    events ─────────────► Intake ─► event log ──────────────► driver ──────┴─► mailbox ─► feeds, SSE, webhooks
"""
