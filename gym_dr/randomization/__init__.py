"""Parameters, distributions, randomizations and keyed draws."""
