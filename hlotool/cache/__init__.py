"""What is kept between runs and can be done without: the journals of commands, compiled kernels."""
