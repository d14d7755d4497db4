"""Gymnasium's Box2D environments, and Box2D's algorithm in compiled code."""
