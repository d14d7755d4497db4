"""Gymnasium's environments on Box2D, and Box2D's algorithm in compiled code."""
