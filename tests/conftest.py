"""What all tests share: one Hypothesis profile, the same cases on every run."""

import pytest
from hypothesis import settings

settings.register_profile("tidings", derandomize=True, deadline=None)
settings.load_profile("tidings")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--worlds", type=int, default=4, help="how many random worlds of joins are tried")
    parser.addoption("--rounds", type=int, default=1, help="how often each part of the service is killed")
    parser.addoption("--seed", type=int, default=1, help="of the moments when it is")


@pytest.fixture
def worlds(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--worlds"))


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--rounds"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--seed"))
