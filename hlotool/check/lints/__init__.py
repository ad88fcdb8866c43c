"""Legal programs that are probably not what was meant, or slower than they need be."""
