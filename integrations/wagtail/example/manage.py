"""Runs commands of the example site."""

import os
import sys
from pathlib import Path

from django.core.management import execute_from_command_line

sys.path.insert(0, str(Path(__file__).parents[1]))  # wagtail_tidings, where it is not installed
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "newsroom.settings")

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
