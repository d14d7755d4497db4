"""What ``gymdr bench`` measures: the speed of stepping, its scaling, the time to learn, and an update's parts."""
