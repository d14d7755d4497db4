"""A vector environment of worker processes that may die, hang or lie without taking the program with them."""
