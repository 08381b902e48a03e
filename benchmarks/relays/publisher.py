"""Publishes events at a steady rate to the service on this host, and prints how many.

python -m benchmarks.relays.publisher    with {"port", "rate", "seconds", "buckets"} on standard input
"""

from __future__ import annotations

import json
import sys
import time

import httpx

if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    count = int(given["rate"] * given["seconds"])
    with httpx.Client(base_url=f"http://127.0.0.1:{given['port']}", timeout=60) as http:
        began = time.monotonic()
        for seq in range(count):
            time.sleep(max(0.0, began + seq / given["rate"] - time.monotonic()))
            event = {"source": "bench", "id": str(seq), "bucket": seq % given["buckets"], "price": 5}
            event |= {"seq": seq, "sent": time.time(), "title": f"An event of the benchmark, number {seq}"}
            http.post("/api/events", json=event).raise_for_status()
    print(count, flush=True)
