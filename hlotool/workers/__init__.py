"""Work that can crash, hang or fill the memory, each piece in a process of its own."""
