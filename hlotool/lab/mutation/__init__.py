"""Would these inputs notice a fault? Single faults are planted in a program, and each is judged on them."""
