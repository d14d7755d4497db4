"""The measurements of ``gymdr bench``: stepping speed and scaling, time to learn, and the parts of an update."""
