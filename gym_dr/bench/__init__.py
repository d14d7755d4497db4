"""The measurements of ``gymdr bench``: steps per second, their scaling, and the time to learn."""
