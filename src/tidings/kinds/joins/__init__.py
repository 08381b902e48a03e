"""Joins: subscriptions over tables; each is notified of the rows that it gains and loses with every change."""
