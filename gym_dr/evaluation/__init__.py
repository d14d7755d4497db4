"""Evaluation of frozen policies on chosen draws."""
