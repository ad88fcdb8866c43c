"""Making a failing program small: graph, nested computations, shapes, element types, values."""
