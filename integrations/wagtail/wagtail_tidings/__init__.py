"""Alerts for the visitors of a Wagtail site, matched by a Tidings service.

Pages become events, the page tree and the tags become the taxonomy, and what a visitor asks for becomes a subscription. The
service matches and keeps the schedule; the site decides who may see a page, and sends the mail.
"""
