"""HLO in a finite field: floats are exact residues at random points, so that nothing is rounded."""
