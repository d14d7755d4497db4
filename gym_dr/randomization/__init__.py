"""Parameters, distributions, randomizations and keyed draws.

Each file imports only those before it:

    normal, distributions    quantile functions
    spec                     Randomization: parameter -> distribution and operation, in every form that users write
    space                    ParamSpace: parameter -> nominal value, bounds and what it needs
    files, presets           reads a user's randomization and checks it against a space (``resolve``)
    sampler                  ParamSampler, which makes draws; Sampler, a kind of it that a run can choose by name
    draws                    keyed draws, and the sampler of a randomization that never changes
    samples                  draws as a table
    table                    ParamTable: the values of all sub-environments, episode after episode
    context                  draws in the observation
    episode                  the parameters of one environment
    adaptive/                samplers that learn, one file a method
"""
