"""Relays: services at the edge that ask an upstream service for the events that their own subscribers need."""
