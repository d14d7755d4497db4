"""Contracts that every environment, algorithm and sampler of gym_dr satisfies; plugins can test theirs with them.

Each contract is a function with plain asserts, named after its promise. Testing a plugin takes three lines::

    @pytest.mark.parametrize("contract", ENVIRONMENT_CONTRACTS["native"])
    def test_my_environment(contract):
        contract(Mode(env_id="my/Env-v0", name="native"))  # or "single", "sync", "async"

Likewise ``ALGORITHM_CONTRACTS`` take an ``AlgorithmCase`` and a path, and ``SAMPLER_CONTRACTS`` a ``SamplerCase``. For
readable failures, put ``pytest.register_assert_rewrite("gym_dr.testing")`` in ``conftest.py``.
"""
