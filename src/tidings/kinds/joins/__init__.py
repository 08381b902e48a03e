"""Joins: subscriptions over tables, and what each gains and loses with every change of a row."""
