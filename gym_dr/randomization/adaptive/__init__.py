"""Samplers that learn from finished episodes which draws the policy is ready for, one file per method."""
