"""``python -m gym_dr`` is ``gymdr``."""

from gym_dr.cli.main import main

if __name__ == "__main__":
    main()
