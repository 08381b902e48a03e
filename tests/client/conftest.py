"""The same real service as the tests of the service have."""

from tests.service.conftest import guarded, running, served

__all__ = ["guarded", "running", "served"]
