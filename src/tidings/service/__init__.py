"""The HTTP service: manages subscriptions, accepts events, and delivers notifications by feeds, streams and
webhooks.

Control plane and data plane are separate. The *registry* stores subscriptions, tokens, sources and deliveries;
the *mailbox* stores notifications. An accepted event is in the event log before the request is answered. A
*driver*, a process of its own that runs Spark, matches the log against the index and writes each micro-batch to
the mailbox in one transaction. Every delivery reads the mailbox from a cursor on, so no notification is repeated
or skipped.

    HTTP, page, XML-RPC ─► Lifecycle ─► registry ─► IndexWriter ─► index versions ─┐
    events ─────────────► LogWriter ─► event log ──────────────► driver ───────────┴─► mailbox ─► feeds, SSE, webhooks
"""
