"""Two programs as functions of real numbers: the exact arbiter.

Both are evaluated at random points of a finite field (`backends.field`), where nothing is rounded. What is
equal there is the same function, up to a probability that is stated; what is not has a witness.
"""
