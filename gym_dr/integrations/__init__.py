"""Integrations with other libraries, one file each; only that file imports the library."""
