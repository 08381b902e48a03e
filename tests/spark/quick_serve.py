"""`tidings serve` for tests that kill it: its index is folded often, and its driver is started again soon."""

from tidings.cli import main
from tidings.service.matching import compaction
from tidings.service.matching.supervisor import Supervisor

compaction.AT_LEAST = 30
Supervisor.__init__.__kwdefaults__["pauses"] = (0.5, 1.0, 2.0)

if __name__ == "__main__":
    main()
