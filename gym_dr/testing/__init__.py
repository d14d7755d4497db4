"""Contracts that every environment, algorithm and sampler of gym_dr keeps; plugins can hold theirs to them.

Each contract is a function with plain asserts that is named after its promise. A plugin's tests are three lines::

    @pytest.mark.parametrize("contract", ENVIRONMENT_CONTRACTS["native"])
    def test_my_environment(contract):
        contract(Mode(env_id="my/Env-v0", name="native"))  # or "single", "sync", "async"

Likewise ``ALGORITHM_CONTRACTS`` take an ``AlgorithmCase`` and a path, and ``SAMPLER_CONTRACTS`` a ``SamplerCase``. For
readable failures, ``pytest.register_assert_rewrite("gym_dr.testing")`` goes into ``conftest.py``.
"""
