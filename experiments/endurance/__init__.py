"""Long runs that look for what shows late: kills, and leaks.

    python -m experiments.endurance --run=kills --kills=50
    python -m experiments.endurance --run=soak --elements=10_000_000

The tests of the repository run short forms of both; what long ones found is in
`experiments/results/endurance/checks.jsonl`.
"""
