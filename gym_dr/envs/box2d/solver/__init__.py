"""Box2D 2.3's solver in compiled code, bit for bit the same, for many small worlds at once. README.md explains it."""
