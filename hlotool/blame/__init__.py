"""Which pass, which instruction, which smallest program: bisection, reduction, bundles, differences."""
